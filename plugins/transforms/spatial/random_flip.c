/* plugins/transforms/spatial/random_flip.c: mirrors a picture with probability p. */
#include "plugins/transforms/geometry/geometry.h"

typedef struct flip_options {
  double p;
  int32_t direction;
} flip_options;

static const tn_option options[] = {TN_OPT(flip_options, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability"),
                                    TN_OPT(flip_options, direction, TN_OPT_ENUM, "horizontal",
                                           "horizontal|vertical",
                                           "horizontal exchanges left and right, vertical top and bottom"),
                                    TN_OPT_END};

static tn_status random_flip_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                   tn_type *out) {
  (void)opts;
  return geometry_infer(env, n, in, out, 0);
}

static int random_flip_choose(const tn_transform_call *c, const flip_options *o) {
  tn_rng rng = tn_rng_at(c->key, 0);
  return tn_rng_uniform(&rng) < o->p;
}

static tn_status random_flip_apply(tn_transform_call *c, const void *opts) {
  const flip_options *o = opts;
  geometry g = {.kind = GEOMETRY_FLIP, .direction = o->direction};
  return random_flip_choose(c, o) ? geometry_apply(c, &g) : geometry_copy(c);
}

/* Whether the rows and the columns are in reverse order, as the op `crop` takes them. */
static tn_status random_flip_draw(tn_transform_call *c, const void *opts, int32_t *values) {
  const flip_options *o = opts;
  int mirrored = random_flip_choose(c, o);
  values[0] = o->direction == FLIP_VERTICAL && mirrored;
  values[1] = o->direction == FLIP_HORIZONTAL && mirrored;
  return TN_OK;
}

/* A mirrored place is the size less the place. */
static tn_val random_flip_build_places(tn_build *b, tn_val places, tn_val mirror) {
  tn_val first = tn_build_in(b, 0), xy = geometry_build_draws(b, mirror);
  int64_t height = tn_val_dim(b, first, -2), width = tn_val_dim(b, first, -1);
  const tn_val sizes[2] = {tn_affine(b, tn_slice_axis(b, xy, 2, 0, 1), (double)width, 0),
                           tn_affine(b, tn_slice_axis(b, xy, 2, 1, 2), (double)height, 0)};
  return geometry_build_places(b, places, tn_affine(b, xy, -2, 1), tn_concat(b, 2, sizes, 2), height, width);
}

static tn_status random_flip_build(tn_build *b, const void *opts) {
  (void)opts;
  int32_t n = tn_build_n_in(b) - 1;
  tn_val mirror = tn_build_in(b, n);
  for (int32_t k = 0; k < n; k++) {
    tn_val x = tn_build_in(b, k);
    const int64_t size[] = {tn_val_dim(b, x, -2), tn_val_dim(b, x, -1)};
    if (geometry_build_field(b, k) <= FIELD_MASK)
      tn_build_yield(b, k, tn_crop(b, x, 0, mirror, 2, size));
    else
      tn_build_yield(b, k, random_flip_build_places(b, x, mirror));
  }
  return tn_build_status(b);
}

const tn_transform random_flip_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_flip", "mirrors at random (training only)",
                    flip_options, options),
    .training_only = 1,
    .types = "a picture, then masks, boxes, points",
    .example = "transforms = random_flip, to_float",
    .infer = random_flip_infer,
    .apply = random_flip_apply,
    .build = random_flip_build,
    .draws = 2,
    .draw = random_flip_draw,
};
