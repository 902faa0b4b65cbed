/* plugins/transforms/convert/normalize.c: (x - mean) / std for each channel, in f32. A u8 field is scaled to
 * 0 .. 1 first, so that `normalize` gives the bits of torchvision's ToTensor and Normalize. */
#include "plugins/transforms/transforms.h"

typedef struct normalize_options {
  tn_floats mean, std;
} normalize_options;

static const tn_option options[] = {
    TN_OPT(normalize_options, mean, TN_OPT_FLOATS, NULL, "[-1e37, 1e37]",
           "one number, or one per channel (the first dimension)"),
    TN_OPT(normalize_options, std, TN_OPT_FLOATS, NULL, "[1e-37, 1e37]", "one number, or one per channel"),
    TN_OPT_END};

static tn_status check_list(tn_env *env, const char *name, const tn_floats *list, const tn_type *type) {
  if (list->n == 1 || (list->n > 0 && type->rank > 0 && list->n == type->dims[0])) return TN_OK;
  return tn_fail(env, TN_EINVAL, name, "%s has %lld numbers for %lld channels, expected one, or one for each",
                 name, (long long)list->n, (long long)(type->rank > 0 ? type->dims[0] : 1));
}

static tn_status normalize_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const normalize_options *o = opts;
  for (int32_t k = 0; k < n; k++) {
    TN_TRY(check_list(env, "mean", &o->mean, &in[k]));
    TN_TRY(check_list(env, "std", &o->std, &in[k]));
    if (in[k].dtype != TN_U8 && in[k].dtype != TN_F32)
      return tn_fail(env, TN_EINVAL, NULL, "a field is %s, expected u8 or f32", tn_dtype_name(in[k].dtype));
    out[k] = in[k];
    out[k].dtype = TN_F32;
  }
  return TN_OK;
}

static float entry(const tn_floats *list, int64_t channel) {
  return (float)list->v[list->n > 1 ? channel : 0];
}

static void normalize_u8(const uint8_t *in, float *out, int64_t count, float mean, float std) {
  for (int64_t i = 0; i < count; i++) out[i] = ((float)in[i] / 255.0f - mean) / std;
}

static void normalize_f32(const float *in, float *out, int64_t count, float mean, float std) {
  for (int64_t i = 0; i < count; i++) out[i] = (in[i] - mean) / std;
}

static tn_status normalize_apply(tn_transform_call *c, const void *opts) {
  const normalize_options *o = opts;
  for (int32_t k = 0; k < c->n; k++) {
    const tn_type *type = &c->in_type[k];
    int64_t channels = type->rank > 0 ? type->dims[0] : 1;
    int64_t count = channels > 0 ? tn_type_count(type) / channels : 0;
    for (int64_t ch = 0; ch < channels; ch++) {
      float *out = (float *)c->out[k] + ch * count, mean = entry(&o->mean, ch), std = entry(&o->std, ch);
      if (type->dtype == TN_U8)
        normalize_u8((const uint8_t *)c->in[k] + ch * count, out, count, mean, std);
      else
        normalize_f32((const float *)c->in[k] + ch * count, out, count, mean, std);
    }
  }
  return TN_OK;
}

/* 0, 1, ... C - 1 as (C, 1, ...), which broadcasts over (N, C, ...). */
static tn_val channel_numbers(tn_build *b, int64_t channels, int32_t rank) {
  int64_t dims[TN_MAX_RANK] = {channels};
  for (int32_t d = 1; d < rank - 1; d++) dims[d] = 1;
  tn_op_begin(b, "iota");
  tn_op_set_ints(b, "dims", rank - 1, dims);
  tn_op_set_int(b, "axis", 0);
  return tn_op_end(b);
}

/* A list as a value that broadcasts over (N, C, ...). Numbers that are chosen by the channel are pointwise,
 * and so part of the launch that reads them; a list in memory would have a launch for each number. */
static tn_val constant(tn_build *b, const tn_floats *list, int32_t rank) {
  if (list->n == 1) return tn_scalar(b, TN_F32, list->v[0]);
  tn_val channel = channel_numbers(b, list->n, rank), chosen = tn_scalar(b, TN_F32, list->v[list->n - 1]);
  for (int64_t i = list->n - 1; i-- > 0;) {
    tn_val here = tn_eq(b, channel, tn_scalar(b, tn_val_type(b, channel)->dtype, (double)i));
    chosen = tn_where(b, here, tn_scalar(b, TN_F32, list->v[i]), chosen);
  }
  return chosen;
}

static tn_status normalize_build(tn_build *b, const void *opts) {
  const normalize_options *o = opts;
  for (int32_t k = 0; k < tn_build_n_in(b); k++) {
    tn_val x = tn_build_in(b, k);
    int32_t rank = tn_val_type(b, x)->rank;
    if (tn_val_type(b, x)->dtype == TN_U8)
      x = tn_div(b, tn_to_dtype(b, x, TN_F32), tn_scalar(b, TN_F32, 255));
    x = tn_sub(b, x, constant(b, &o->mean, rank));
    tn_build_yield(b, k, tn_div(b, x, constant(b, &o->std, rank)));
  }
  return tn_build_status(b);
}

const tn_transform normalize_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "normalize",
                    "(x - mean) / std per channel; u8 is scaled to 0 .. 1 first", normalize_options, options),
    .types = "u8 or f32 [channels, ...] to f32",
    .example = "transforms = normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])",
    .infer = normalize_infer,
    .apply = normalize_apply,
    .build = normalize_build,
    .pointwise = 1,
};
