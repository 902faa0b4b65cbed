/* core/exec/device/open_backend.h: what the host fills in around `open` and `properties` of a backend. Every
 * caller of the two goes through here. */
#pragma once

#include "core/base/arena.h"
#include "core/config/options/options.h"
#include "tenon/plugin/backend.h"

/* The option `name` of a backend if it has this type; else NULL. */
const tn_option *tn_backend_option(const tn_options *options, const char *name, uint32_t type);

/* Ends the filling of a backend's options, before `open`: 0 threads become the processors that this process
 * may use, or as many as the option's range allows. */
tn_status tn_backend_finish_options(tn_env *env, tn_options *options);

/* The properties of device `index`. Memory whose size the backend leaves 0 is the host's. */
tn_status tn_backend_describe(tn_env *env, const tn_backend *backend, void *self, int32_t index,
                              tn_device_properties *properties);

/* Library number `index` of a backend; false: there are no more. */
bool tn_backend_library_at(tn_env *env, const tn_backend *backend, void *self, int32_t index,
                           tn_backend_library *library);
/* "oneDNN 2.6.3, acmeBLAS 4.1", in the arena; "": the backend names none. NULL: no memory. */
const char *tn_backend_libraries(tn_env *env, const tn_backend *backend, void *self, tn_arena *arena);
