/* plugins/transforms/spatial/random_resized_crop.c: a part with random size and aspect ratio, resized to one
 * size: the augmentation of Szegedy et al., "Going deeper with convolutions", CVPR 2015, as in torchvision's
 * RandomResizedCrop. */
#include <math.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct resized_options {
  tn_ints size;
  tn_floats scale, ratio;
} resized_options;

static const tn_option options[] = {
    TN_OPT(resized_options, size, TN_OPT_INTS, NULL, ">= 1", "height and width; one number for a square"),
    TN_OPT(resized_options, scale, TN_OPT_FLOATS, "[0.08, 1]", "(0, 1]",
           "least and greatest fraction of the area"),
    TN_OPT(resized_options, ratio, TN_OPT_FLOATS, "[0.75, 1.3333333333333333]", "> 0",
           "least and greatest ratio of width to height"),
    TN_OPT_END};

enum { ATTEMPTS = 10 };

static tn_status random_resized_crop_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                           tn_type *out) {
  const resized_options *o = opts;
  int64_t height, width;
  tn_status status = size_read(env, &o->size, &height, &width);
  if (status == TN_OK) status = range_check(env, "scale", &o->scale);
  if (status == TN_OK) status = range_check(env, "ratio", &o->ratio);
  if (status == TN_OK) status = geometry_infer(env, n, in, out, 1);
  if (status == TN_OK) status = resample_check(env, n, in);
  if (status == TN_OK) geometry_set_size(n, out, height, width);
  return status;
}

/* The largest centred part with an allowed ratio. */
static window random_resized_crop_centre(const resized_options *o, picture p) {
  window w = {0, 0, p.height, p.width};
  double ratio = (double)p.width / (double)p.height;
  if (ratio < o->ratio.v[0]) w.height = lrint((double)p.width / o->ratio.v[0]);
  if (ratio > o->ratio.v[1]) w.width = lrint((double)p.height * o->ratio.v[1]);
  w.height = w.height < 1 ? 1 : w.height;
  w.width = w.width < 1 ? 1 : w.width;
  w.top = (p.height - w.height) / 2;
  w.left = (p.width - w.width) / 2;
  return w;
}

static window random_resized_crop_choose(const resized_options *o, picture p, tn_rng *rng) {
  double area = (double)p.height * (double)p.width;
  for (int i = 0; i < ATTEMPTS; i++) {
    double part = area * tn_rng_between(rng, o->scale.v[0], o->scale.v[1]);
    double ratio = exp(tn_rng_between(rng, log(o->ratio.v[0]), log(o->ratio.v[1])));
    int64_t width = lrint(sqrt(part * ratio)), height = lrint(sqrt(part / ratio));
    if (width < 1 || height < 1 || width > p.width || height > p.height) continue;
    int64_t top = tn_rng_below(rng, p.height - height + 1);
    return (window){top, tn_rng_below(rng, p.width - width + 1), height, width};
  }
  return random_resized_crop_centre(o, p);
}

static tn_status random_resized_crop_apply(tn_transform_call *c, const void *opts) {
  picture in = picture_of(&c->in_type[0]);
  if (in.height < 1 || in.width < 1)
    return tn_fail(c, TN_EINVAL, NULL, "a picture without pixels cannot be cropped");
  tn_rng rng = tn_rng_at(c->key, 0);
  geometry g = geometry_part(random_resized_crop_choose(opts, in, &rng), &c->out_type[0]);
  TN_TRY(picture_check(&c->env, c->n, c->in_type, 1));
  return geometry_apply(c, &g);
}

const tn_transform random_resized_crop_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_resized_crop",
                    "a part with random size and ratio, resized (training only)", resized_options, options),
    .training_only = 1,
    .types = "a picture of u8 or f32, then masks, boxes, points",
    .example = "transforms = random_resized_crop(224), to_float",
    .infer = random_resized_crop_infer,
    .apply = random_resized_crop_apply,
};
