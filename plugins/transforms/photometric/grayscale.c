/* plugins/transforms/photometric/grayscale.c: grayscale, and random_grayscale, which keeps the channels. */
#include <string.h>

#include "plugins/transforms/transforms.h"

typedef struct gray_options {
  int64_t num_output_channels; /* grayscale only */
  double p;                    /* random_grayscale only */
} gray_options;

static const tn_option grayscale_options[] = {
    TN_OPT(gray_options, num_output_channels, TN_OPT_INT, "1", "[1, 3]", "1, or 3 equal channels"),
    TN_OPT_END};
static const tn_option random_options[] = {
    TN_OPT(gray_options, p, TN_OPT_FLOAT, "0.1", "[0, 1]", "probability"), TN_OPT_END};

static tn_status gray_check(tn_env *env, int32_t n, const tn_type *in) {
  tn_status status = picture_check(env, n, in, 0);
  if (status == TN_OK) status = picture_check_numbers(env, n, in, 0);
  for (int32_t k = 0; status == TN_OK && k < n; k++) {
    int64_t channels = picture_channels(&in[k]);
    if (field_kind(k, &in[k]) != FIELD_PICTURE) continue;
    if (channels >= 0 && channels != 1 && channels != 3)
      return tn_fail(env, TN_EINVAL, NULL, "a picture has %lld channels, expected 1 or 3",
                     (long long)channels);
  }
  return status;
}

static tn_status grayscale_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const gray_options *o = opts;
  if (o->num_output_channels == 2)
    return tn_fail(env, TN_EINVAL, "num_output_channels", "num_output_channels = 2, expected 1 or 3");
  for (int32_t k = 0; k < n; k++) {
    out[k] = in[k];
    if (field_kind(k, &in[k]) != FIELD_PICTURE) continue;
    if (in[k].rank >= 3) out[k].dims[in[k].rank - 3] = o->num_output_channels;
    if (in[k].rank == 2 && o->num_output_channels == 3)
      return tn_fail(env, TN_EINVAL, "num_output_channels",
                     "a field has rank 2 and no dimension for 3 channels, expected rank 3");
  }
  return gray_check(env, n, in);
}

/* One picture of `channels` planes to one of `wanted` equal planes, or a copy. */
static void gray_picture(const void *in, int32_t dtype, int64_t channels, int64_t wanted, int64_t area,
                         void *out) {
  size_t bytes = (size_t)area * tn_dtype_size(dtype);
  if (channels == 1)
    memcpy(out, in, bytes);
  else if (dtype == TN_U8)
    color_gray_u8(in, area, out);
  else
    color_gray_f32(in, area, out);
  for (int64_t k = 1; k < wanted; k++) memcpy((char *)out + (size_t)k * bytes, out, bytes);
}

static void gray_field(const tn_transform_call *c, int32_t k) {
  const tn_type *type = &c->in_type[k];
  if (field_kind(k, type) != FIELD_PICTURE) {
    memcpy(c->out[k], c->in[k], tn_type_bytes(type));
    return;
  }
  picture p = picture_of(type);
  int64_t channels = picture_channels(type), wanted = picture_channels(&c->out_type[k]),
          area = p.height * p.width;
  size_t item = tn_dtype_size(type->dtype);
  for (int64_t i = 0; channels > 0 && i < p.planes / channels; i++)
    gray_picture((const char *)c->in[k] + (size_t)(i * channels * area) * item, type->dtype, channels, wanted,
                 area, (char *)c->out[k] + (size_t)(i * wanted * area) * item);
}

static tn_status grayscale_apply(tn_transform_call *c, const void *opts) {
  (void)opts;
  for (int32_t k = 0; k < c->n; k++) gray_field(c, k);
  return TN_OK;
}

static tn_status random_grayscale_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                        tn_type *out) {
  (void)opts;
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  return gray_check(env, n, in);
}

static tn_status random_grayscale_apply(tn_transform_call *c, const void *opts) {
  tn_rng rng = tn_rng_at(c->key, 0);
  int gray = tn_rng_uniform(&rng) < ((const gray_options *)opts)->p;
  for (int32_t k = 0; k < c->n; k++) {
    if (gray)
      gray_field(c, k);
    else
      memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  }
  return TN_OK;
}

const tn_transform grayscale_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "grayscale",
                    "the brightness of a picture, as one channel or three", gray_options, grayscale_options),
    .types = "u8 or f32 [channels, height, width], 1 or 3 channels",
    .example = "transforms = grayscale, to_float",
    .infer = grayscale_infer,
    .apply = grayscale_apply,
};

const tn_transform random_grayscale_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_grayscale",
                    "takes the colors away at random (training only)", gray_options, random_options),
    .training_only = 1,
    .types = "u8 or f32 [channels, height, width], 1 or 3 channels",
    .example = "transforms = random_grayscale(0.1), to_float",
    .infer = random_grayscale_infer,
    .apply = random_grayscale_apply,
};
