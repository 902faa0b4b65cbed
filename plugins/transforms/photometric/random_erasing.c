/* plugins/transforms/photometric/random_erasing.c: overwrites a part of a picture with random size and place
 * (Zhong et al., "Random erasing data augmentation", AAAI 2020), as torchvision's RandomErasing. */
#include <math.h>
#include <string.h>

#include "plugins/transforms/transforms.h"

typedef struct erasing_options {
  double p;
  tn_floats scale, ratio, value;
  int32_t noise;
} erasing_options;

static const tn_option options[] = {
    TN_OPT(erasing_options, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability"),
    TN_OPT(erasing_options, scale, TN_OPT_FLOATS, "[0.02, 0.33]", "(0, 1]",
           "least and greatest fraction of the area"),
    TN_OPT(erasing_options, ratio, TN_OPT_FLOATS, "[0.3, 3.3]", "> 0",
           "least and greatest ratio of height to width"),
    TN_OPT(erasing_options, value, TN_OPT_FLOATS, "0", NULL, "one number, or one per channel"),
    TN_OPT(erasing_options, noise, TN_OPT_FLAG, "no", NULL,
           "standard normal numbers instead of value, for fields of f32"),
    TN_OPT_END};

enum { ERASING_ATTEMPTS = 10 };

static tn_status erasing_check_field(tn_env *env, const erasing_options *o, const tn_type *type) {
  if (type->dtype == TN_U8 && o->noise)
    return tn_fail(env, TN_EINVAL, "noise",
                   "noise is for fields of f32, and this one is u8; put to_float or normalize in front");
  for (int64_t i = 0; type->dtype == TN_U8 && i < o->value.n; i++)
    if (!(o->value.v[i] >= 0 && o->value.v[i] <= 255))
      return tn_fail(env, TN_EINVAL, "value", "value is %g for a field of u8, expected 0 to 255",
                     o->value.v[i]);
  return channel_check(env, "value", &o->value, type);
}

static tn_status random_erasing_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                      tn_type *out) {
  const erasing_options *o = opts;
  tn_status status = range_check(env, "scale", &o->scale);
  if (status == TN_OK) status = range_check(env, "ratio", &o->ratio);
  if (status == TN_OK) status = picture_check(env, n, in, 1);
  if (status == TN_OK) status = picture_check_numbers(env, n, in, 0);
  for (int32_t k = 0; status == TN_OK && k < n; k++) {
    out[k] = in[k];
    if (field_kind(k, &in[k]) == FIELD_PICTURE) status = erasing_check_field(env, o, &in[k]);
  }
  return status;
}

/* A part smaller than the picture; nothing where none is found. */
static window erasing_choose(const erasing_options *o, picture p, tn_rng *rng) {
  double area = (double)p.height * (double)p.width;
  if (tn_rng_uniform(rng) >= o->p) return (window){0, 0, 0, 0};
  for (int i = 0; i < ERASING_ATTEMPTS; i++) {
    double part = area * tn_rng_between(rng, o->scale.v[0], o->scale.v[1]);
    double ratio = exp(tn_rng_between(rng, log(o->ratio.v[0]), log(o->ratio.v[1])));
    int64_t height = lrint(sqrt(part * ratio)), width = lrint(sqrt(part / ratio));
    if (height >= p.height || width >= p.width) continue;
    int64_t top = tn_rng_below(rng, p.height - height + 1);
    return (window){top, tn_rng_below(rng, p.width - width + 1), height, width};
  }
  return (window){0, 0, 0, 0};
}

static void erasing_fill(const erasing_options *o, const tn_type *type, window part, tn_rng *rng, void *out) {
  picture p = picture_of(type);
  for (int64_t plane = 0; plane < p.planes; plane++) {
    float value = channel_number(&o->value, plane);
    for (int64_t y = part.top; y < part.top + part.height; y++) {
      int64_t at = (plane * p.height + y) * p.width + part.left;
      if (type->dtype == TN_U8) {
        memset((uint8_t *)out + at, (int)value, (size_t)part.width);
        continue;
      }
      float *row = (float *)out + at;
      for (int64_t x = 0; x < part.width; x++) row[x] = o->noise ? random_normal(rng) : value;
    }
  }
}

static tn_status random_erasing_apply(tn_transform_call *c, const void *opts) {
  const erasing_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  TN_TRY(picture_check(&c->env, c->n, c->in_type, 1));
  window part = erasing_choose(o, picture_of(&c->in_type[0]), &rng);
  for (int32_t k = 0; k < c->n; k++) {
    memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
    if (field_kind(k, &c->in_type[k]) == FIELD_PICTURE)
      erasing_fill(o, &c->in_type[k], part, &rng, c->out[k]);
  }
  return TN_OK;
}

const tn_transform random_erasing_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_erasing",
                    "overwrites a part of a picture at random (training only)", erasing_options, options),
    .training_only = 1,
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = to_float, random_erasing(0.25)",
    .infer = random_erasing_infer,
    .apply = random_erasing_apply,
};
