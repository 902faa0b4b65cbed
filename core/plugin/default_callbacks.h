/* core/plugin/default_callbacks.h: the callbacks that a backend leaves out, and the groups that come together
 * (tenon/plugin/backend.h). negotiate.c fills them in when a plugin is loaded, so no other file asks whether
 * a backend has a callback, except for `enqueue`, `parallel` and `capture`, whose absence means something. */
#pragma once

#include <stdbool.h>

#include "tenon/plugin/backend.h"

/* The rule that a backend as its author wrote it breaks; NULL: none. */
const char *tn_backend_check_callbacks(const tn_backend *backend);

/* Sets the callbacks that are NULL. An extension has no devices and gets open, close and library only. */
void tn_backend_fill_callbacks(tn_backend *backend);

/* Whether device memory is the default: memory of the host, from the application's allocator. */
bool tn_backend_has_host_memory(const tn_backend *backend);

/* Whether streams are the default: work is done when the call that enqueues it returns. */
bool tn_backend_is_synchronous(const tn_backend *backend);
