/* plugins/layers/source.c: layers without an input: a parameter and a buffer, which have the name of their
 * line. */
#include "plugins/layers/layers.h"

typedef struct source_options {
  tn_ints dims;
  const char *init;
} source_options;
static const tn_option source_rows[] = {
    TN_OPT(source_options, dims, TN_OPT_INTS, NULL, ">= 1", "all dimensions; [] for one number"),
    TN_OPT(source_options, init, TN_OPT_INIT, "zeros", NULL, "initializer"), TN_OPT_END};

static tn_status source_read_type(tn_build *b, const source_options *o, tn_type *type) {
  *type = (tn_type){.dtype = TN_F32, .rank = (int32_t)o->dims.n};
  if (o->dims.n > TN_MAX_RANK)
    return tn_fail(b, TN_EINVAL, "dims", "%lld dimensions, expected at most %d", (long long)o->dims.n,
                   TN_MAX_RANK);
  for (int64_t i = 0; i < o->dims.n; i++) type->dims[i] = o->dims.v[i];
  return TN_OK;
}

static tn_status build_param(tn_build *b, const void *given) {
  const source_options *o = given;
  tn_type type;
  tn_status status = source_read_type(b, o, &type);
  if (status == TN_OK) tn_build_yield(b, 0, tn_build_param(b, "", &type, o->init));
  return status;
}
const tn_layer_kind layer_param = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "param", "a trained parameter that has the name of its line",
                    source_options, source_rows),
    .min_in = 0,
    .max_in = 0,
    .types = "nothing to dims",
    .example = "inputs = x: f32[64]\nlayers =\n    scale: param([64], init=ones)\n    y = x * scale",
    .build = build_param};

static tn_status build_buffer(tn_build *b, const void *given) {
  const source_options *o = given;
  tn_type type;
  tn_status status = source_read_type(b, o, &type);
  if (status == TN_OK) tn_build_yield(b, 0, tn_build_state(b, "", &type, o->init));
  return status;
}
const tn_layer_kind layer_buffer = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "buffer",
                    "an array that has the name of its line, is saved and loaded, and is not trained",
                    source_options, source_rows),
    .min_in = 0,
    .max_in = 0,
    .types = "nothing to dims",
    .example = "inputs = x: f32[64]\nlayers =\n    mean: buffer([64])\n    y = x - mean",
    .build = build_buffer};
