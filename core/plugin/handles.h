/* core/plugin/handles.h: the handles of the host table (tenon/api.h). graph, compile, exec and data, which
 * serve the calls, may use this room, not the reverse. So they make their handles from the structs here: the
 * public part first, and after it the functions that serve the calls of api.c. */
#pragma once

#include "core/base/env.h"
#include "tenon/build.h"
#include "tenon/plugin/kernel.h"
#include "tenon/plugin/source.h"

/* The table that every handle of this host points to (api.c). */
extern const tn_api tn_host_api;

/* The emitter: the entries of tn_api from begin to status, with the same names, order and meaning
 * (build.h). Every member is set. core/graph has the table; `b` is a tn_build_host. */
typedef struct tn_build_ops {
  void (*begin)(tn_build *b, const char *op);
  void (*arg)(tn_build *b, tn_val value);
  void (*set_int)(tn_build *b, const char *name, int64_t value);
  void (*set_float)(tn_build *b, const char *name, double value);
  void (*set_ints)(tn_build *b, const char *name, int64_t n, const int64_t *values);
  void (*set_floats)(tn_build *b, const char *name, int64_t n, const double *values);
  void (*set_text)(tn_build *b, const char *name, const char *value);
  tn_val (*end)(tn_build *b);
  tn_val (*result)(tn_build *b, tn_val first, int32_t index);
  const tn_type *(*type)(tn_build *b, tn_val value);
  int32_t (*n_in)(tn_build *b);
  tn_val (*in)(tn_build *b, int32_t index);
  tn_val (*out)(tn_build *b, int32_t index);
  tn_val (*dout)(tn_build *b, int32_t index);
  int32_t (*want)(tn_build *b, int32_t index);
  void (*yield)(tn_build *b, int32_t index, tn_val value);
  tn_val (*param)(tn_build *b, const char *name, const tn_type *type, const char *init);
  tn_val (*state)(tn_build *b, const char *name, const tn_type *type, const char *init);
  void (*commit)(tn_build *b, tn_val state, tn_val now);
  tn_val (*layer)(tn_build *b, const char *name, const char *line, const tn_val *in, int32_t n_in);
  tn_val (*option_value)(tn_build *b, const char *option);
  tn_val (*counter)(tn_build *b, int32_t which);
  uint64_t (*stream)(tn_build *b, const char *use);
  int32_t (*training)(tn_build *b);
  int32_t (*ranks)(tn_build *b);
  tn_status (*status)(tn_build *b);
  int32_t (*frozen)(tn_build *b, const char *name);
} tn_build_ops;

typedef struct tn_build_host {
  tn_build pub;
  const tn_build_ops *ops;
} tn_build_host;

/* A query: core/compile collects the variants. */
typedef struct tn_query_host {
  tn_query pub;
  void (*variant)(tn_query *q, const tn_variant *variant);
} tn_query_host;

/* A launch: core/exec sets the backend's `parallel` and its device; NULL: chunks run one after the other. */
typedef struct tn_launch_host {
  tn_launch pub;
  void (*parallel)(tn_env *env, void *device, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                   void *arg);
  void *device;
} tn_launch_host;

/* A sample: core/data returns the memory of its fields. */
typedef struct tn_sample_host {
  tn_sample pub;
  void *(*field)(tn_sample *s, int32_t field, const tn_type *type);
} tn_sample_host;
