/* plugins/transforms/spatial/crop.c: center_crop and random_crop. */
#include <math.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct crop_options {
  tn_ints size;
  int64_t padding; /* random_crop only */
} crop_options;

#define SIZE_OPTION                                                                                          \
  TN_OPT(crop_options, size, TN_OPT_INTS, NULL, ">= 1", "height and width; one number for a square")

static const tn_option center_options[] = {SIZE_OPTION, TN_OPT_END};
static const tn_option random_options[] = {
    SIZE_OPTION,
    TN_OPT(crop_options, padding, TN_OPT_INT, "0", "[0, 65536]", "zeros to add around the picture first"),
    TN_OPT_END};

/* A dimension that varies (-1) is checked in apply, with its actual size. */
static tn_status crop_check_room(tn_env *env, const crop_options *o, const tn_type *in, int64_t height,
                                 int64_t width) {
  int64_t high = in->dims[in->rank - 2], wide = in->dims[in->rank - 1], more = 2 * o->padding;
  if ((high < 0 || high + more >= height) && (wide < 0 || wide + more >= width)) return TN_OK;
  return tn_fail(env, TN_EINVAL, "size",
                 "a picture of %lld x %lld is too small for a crop of %lld x %lld; resize it first",
                 (long long)high, (long long)wide, (long long)height, (long long)width);
}

static tn_status crop_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const crop_options *o = opts;
  int64_t height, width;
  TN_TRY(size_read(env, &o->size, &height, &width));
  TN_TRY(geometry_infer(env, n, in, out, 1));
  TN_TRY(crop_check_room(env, o, &in[0], height, width));
  geometry_set_size(n, out, height, width);
  return TN_OK;
}

static tn_status crop_apply(tn_transform_call *c, const crop_options *o, window from) {
  geometry g = geometry_part(from, &c->out_type[0]);
  TN_TRY(picture_check(&c->env, c->n, c->in_type, 1));
  TN_TRY(crop_check_room(&c->env, o, &c->in_type[0], from.height, from.width));
  return geometry_apply(c, &g);
}

/* Half of an odd difference is rounded to even, as in torchvision. */
static tn_status center_apply(tn_transform_call *c, const void *opts) {
  picture in = picture_of(&c->in_type[0]), out = picture_of(&c->out_type[0]);
  window from = {lrint((double)(in.height - out.height) / 2), lrint((double)(in.width - out.width) / 2),
                 out.height, out.width};
  return crop_apply(c, opts, from);
}

/* The part of the picture without padding, so it may begin in front of the picture. */
static window random_window(const tn_transform_call *c, const crop_options *o) {
  tn_rng rng = tn_rng_at(c->key, 0);
  picture in = picture_of(&c->in_type[0]), out = picture_of(&c->out_type[0]);
  int64_t down = in.height + 2 * o->padding - out.height, across = in.width + 2 * o->padding - out.width;
  window from = {0, 0, out.height, out.width};
  if (down > 0) from.top = tn_rng_below(&rng, down + 1);
  if (across > 0) from.left = tn_rng_below(&rng, across + 1);
  from.top -= o->padding;
  from.left -= o->padding;
  return from;
}

static tn_status random_apply(tn_transform_call *c, const void *opts) {
  return crop_apply(c, opts, random_window(c, opts));
}

static tn_status random_draw(tn_transform_call *c, const void *opts, int32_t *values) {
  window from = random_window(c, opts);
  values[0] = (int32_t)from.top;
  values[1] = (int32_t)from.left;
  return TN_OK;
}

/* ---- on the device ---- */

static tn_val crop_build_places(tn_build *b, tn_val places, tn_val start, const int64_t size[2]) {
  return geometry_build_places(b, places, tn_scalar(b, TN_F32, 1), tn_affine(b, start, -1, 0), size[0],
                               size[1]);
}

static tn_status center_build(tn_build *b, const void *opts) {
  const crop_options *o = opts;
  const int64_t size[2] = {o->size.v[0], o->size.v[o->size.n - 1]};
  int64_t start[2];
  for (int32_t axis = 0; axis < 2; axis++)
    start[axis] = lrint((double)(tn_val_dim(b, tn_build_in(b, 0), axis - 2) - size[axis]) / 2);
  const tn_type xy = {TN_F32, 3, {1, 1, 2}};
  for (int32_t k = 0; k < tn_build_n_in(b); k++) {
    tn_val x = tn_build_in(b, k);
    if (geometry_build_field(b, k) > FIELD_MASK) {
      tn_val first = tn_affine(b, tn_iota(b, &xy, 2), (double)(start[0] - start[1]), (double)start[1]);
      tn_build_yield(b, k, crop_build_places(b, x, first, size));
      continue;
    }
    for (int32_t axis = 0; axis < 2; axis++)
      x = tn_slice_axis(b, x, tn_val_type(b, x)->rank - 2 + axis, start[axis], start[axis] + size[axis]);
    tn_build_yield(b, k, x);
  }
  return tn_build_status(b);
}

/* The last value holds the starts that random_draw has written. */
static tn_status random_build(tn_build *b, const void *opts) {
  const crop_options *o = opts;
  int32_t n = tn_build_n_in(b) - 1;
  tn_val starts = tn_build_in(b, n);
  const int64_t size[] = {o->size.v[0], o->size.v[o->size.n - 1]};
  for (int32_t k = 0; k < n; k++) {
    tn_val x = tn_build_in(b, k);
    if (geometry_build_field(b, k) <= FIELD_MASK)
      tn_build_yield(b, k, tn_crop(b, x, starts, 0, 2, size));
    else
      tn_build_yield(b, k, crop_build_places(b, x, geometry_build_draws(b, starts), size));
  }
  return tn_build_status(b);
}

const tn_transform center_crop_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "center_crop", "the middle of a picture", crop_options,
                    center_options),
    .types = "a picture, then masks, boxes, points",
    .example = "transforms = center_crop(224), to_float",
    .infer = crop_infer,
    .apply = center_apply,
    .build = center_build,
};

const tn_transform random_crop_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_crop",
                    "a part of a picture, chosen at random (training only)", crop_options, random_options),
    .training_only = 1,
    .types = "a picture, then masks, boxes, points",
    .example = "transforms = random_crop(32, padding=4), to_float",
    .infer = crop_infer,
    .apply = random_apply,
    .build = random_build,
    .draws = 2,
    .draw = random_draw,
};
