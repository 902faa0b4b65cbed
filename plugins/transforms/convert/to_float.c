/* plugins/transforms/convert/to_float.c: scales bytes to 0 .. 1, as torchvision's ToTensor. */
#include "plugins/transforms/transforms.h"

static tn_status to_float_infer(tn_env *env, const void *options, int32_t n, const tn_type *in,
                                tn_type *out) {
  (void)options;
  for (int32_t k = 0; k < n; k++) {
    if (in[k].dtype != TN_U8)
      return tn_fail(env, TN_EINVAL, NULL, "a field is %s, expected u8", tn_dtype_name(in[k].dtype));
    out[k] = in[k];
    out[k].dtype = TN_F32;
  }
  return TN_OK;
}

static tn_status to_float_apply(tn_transform_call *c, const void *options) {
  (void)options;
  for (int32_t k = 0; k < c->n; k++) {
    const uint8_t *in = c->in[k];
    float *out = c->out[k];
    for (int64_t i = 0, count = tn_type_count(&c->in_type[k]); i < count; i++) out[i] = (float)in[i] / 255.0f;
  }
  return TN_OK;
}

static tn_status to_float_build(tn_build *b, const void *options) {
  (void)options;
  for (int32_t k = 0; k < tn_build_n_in(b); k++)
    tn_build_yield(b, k, tn_div(b, tn_to_dtype(b, tn_build_in(b, k), TN_F32), tn_scalar(b, TN_F32, 255)));
  return tn_build_status(b);
}

const tn_transform to_float_transform = {
    .item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, "to_float", "u8 to f32 from 0 to 1"),
    .types = "u8 to f32",
    .example = "transforms = to_float",
    .infer = to_float_infer,
    .apply = to_float_apply,
    .build = to_float_build,
    .pointwise = 1,
};
