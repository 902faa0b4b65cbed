/* plugins/transforms/spatial/random_iou_crop.c: a part of a picture that overlaps a box by at least a random
 * share (Liu et al., "SSD", ECCV 2016), as torchvision's RandomIoUCrop, resized to one size. Boxes whose
 * centre lies outside of the part become zeros. */
#include <math.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct iou_options {
  tn_ints size;
  double min_scale, max_scale, min_aspect_ratio, max_aspect_ratio;
  tn_floats sampler_options;
  int64_t trials;
} iou_options;

static const tn_option options[] = {
    TN_OPT(iou_options, size, TN_OPT_INTS, NULL, ">= 1", "height and width; one number for a square"),
    TN_OPT(iou_options, min_scale, TN_OPT_FLOAT, "0.3", "(0, 1]",
           "least side of the part, in sides of the picture"),
    TN_OPT(iou_options, max_scale, TN_OPT_FLOAT, "1", "(0, 1]", "greatest side"),
    TN_OPT(iou_options, min_aspect_ratio, TN_OPT_FLOAT, "0.5", "> 0", "least ratio of width to height"),
    TN_OPT(iou_options, max_aspect_ratio, TN_OPT_FLOAT, "2", "> 0", "greatest ratio"),
    TN_OPT(iou_options, sampler_options, TN_OPT_FLOATS, "[0, 0.1, 0.3, 0.5, 0.7, 0.9, 1]", ">= 0",
           "least overlaps (IoU) with a box, one of which is chosen; from 1 on: the whole picture"),
    TN_OPT(iou_options, trials, TN_OPT_INT, "40", "[1, 10000]", "parts that are tried for a chosen overlap"),
    TN_OPT_END};

enum { IOU_CHOICES = 50 };

static const float *iou_boxes(const tn_transform_call *c, int64_t *n) {
  for (int32_t k = 1; k < c->n; k++)
    if (field_kind(k, &c->in_type[k]) == FIELD_BOXES) return *n = c->in_type[k].dims[0], c->in[k];
  return *n = 0, NULL;
}

static tn_status random_iou_crop_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                       tn_type *out) {
  const iou_options *o = opts;
  int64_t height, width;
  int has_boxes = 0;
  TN_TRY(size_read(env, &o->size, &height, &width));
  if (o->min_scale > o->max_scale || o->min_aspect_ratio > o->max_aspect_ratio)
    return tn_fail(env, TN_EINVAL, "min_scale", "the least scale and ratio must not be above the greatest");
  if (o->sampler_options.n < 1)
    return tn_fail(env, TN_EINVAL, "sampler_options",
                   "sampler_options is empty, expected overlaps from 0 to 1");
  for (int32_t k = 1; k < n; k++) has_boxes |= field_kind(k, &in[k]) == FIELD_BOXES;
  if (!has_boxes)
    return tn_fail(env, TN_EINVAL, NULL, "there is no field of boxes, f32[n, 4]; write <- image, boxes");
  TN_TRY(geometry_infer_sampled(env, NULL, n, in, out, 1));
  geometry_set_size(n, out, height, width);
  return TN_OK;
}

/* The greatest overlap with a box whose centre lies in the part, or -1. */
static double iou_most(window w, const float *boxes, int64_t n) {
  double most = -1;
  for (int64_t i = 0; i < n; i++, boxes += 4) {
    double x0 = (double)boxes[0], y0 = (double)boxes[1], x1 = (double)boxes[2], y1 = (double)boxes[3];
    double left = (double)w.left, top = (double)w.top, right = left + (double)w.width,
           bottom = top + (double)w.height;
    if (!(x1 > x0 && y1 > y0) || !geometry_has_centre(w, boxes)) continue;
    double both = fmax(0, fmin(x1, right) - fmax(x0, left)) * fmax(0, fmin(y1, bottom) - fmax(y0, top));
    double either = (x1 - x0) * (y1 - y0) + (right - left) * (bottom - top) - both;
    most = fmax(most, both / either);
  }
  return most;
}

/* One part; 0 where its ratio is not allowed. */
static int iou_draw(const iou_options *o, picture p, tn_rng *rng, window *w) {
  w->width = (int64_t)((double)p.width * tn_rng_between(rng, o->min_scale, o->max_scale));
  w->height = (int64_t)((double)p.height * tn_rng_between(rng, o->min_scale, o->max_scale));
  w->left = (int64_t)((double)(p.width - w->width) * tn_rng_uniform(rng));
  w->top = (int64_t)((double)(p.height - w->height) * tn_rng_uniform(rng));
  if (w->width < 1 || w->height < 1) return 0;
  double ratio = (double)w->width / (double)w->height;
  return ratio >= o->min_aspect_ratio && ratio <= o->max_aspect_ratio;
}

static window iou_choose(const iou_options *o, picture p, const float *boxes, int64_t n, tn_rng *rng) {
  const window whole = {0, 0, p.height, p.width};
  for (int choice = 0; choice < IOU_CHOICES; choice++) {
    double least = o->sampler_options.v[tn_rng_below(rng, o->sampler_options.n)];
    if (least >= 1) return whole;
    for (int64_t trial = 0; trial < o->trials; trial++) {
      window w;
      if (!iou_draw(o, p, rng, &w)) continue;
      double most = iou_most(w, boxes, n);
      if (most >= 0 && most >= least) return w;
    }
  }
  return whole;
}

static tn_status random_iou_crop_apply(tn_transform_call *c, const void *opts) {
  picture p = picture_of(&c->in_type[0]);
  tn_rng rng = tn_rng_at(c->key, 0);
  int64_t n;
  const float *boxes = iou_boxes(c, &n);
  if (p.height < 1 || p.width < 1)
    return tn_fail(c, TN_EINVAL, NULL, "a picture without pixels cannot be cropped");
  TN_TRY(picture_check(&c->env, c->n, c->in_type, 1));
  geometry g = geometry_part(iou_choose(opts, p, boxes, n, &rng), &c->out_type[0]);
  g.needs_centre = 1;
  return geometry_apply(c, &g);
}

const tn_transform random_iou_crop_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_iou_crop",
                    "a part that overlaps a box, resized to one size (training only; <- image, boxes)",
                    iou_options, options),
    .training_only = 1,
    .types = "a picture of u8 or f32, then boxes, masks, points",
    .example = "transforms =\n    random_iou_crop(300) <- image, boxes\n    to_float",
    .infer = random_iou_crop_infer,
    .apply = random_iou_crop_apply,
};
