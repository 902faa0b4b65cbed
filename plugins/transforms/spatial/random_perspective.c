/* plugins/transforms/spatial/random_perspective.c: a picture seen from another place, as torchvision's
 * RandomPerspective: each corner moves inwards by a random way. */
#include "plugins/transforms/geometry/geometry.h"

typedef struct perspective_options {
  double distortion_scale, p;
  sampling how;
  int64_t mask_fill;
} perspective_options;

static const tn_option options[] = {
    TN_OPT(perspective_options, distortion_scale, TN_OPT_FLOAT, "0.5", "[0, 1]",
           "greatest way of a corner, as part of half the picture"),
    TN_OPT(perspective_options, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability"),
    SAMPLING_OPTIONS_OF(perspective_options, "bilinear"), MASK_FILL_OPTION(perspective_options), TN_OPT_END};

static tn_status random_perspective_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                          tn_type *out) {
  return geometry_infer_sampled(env, &((const perspective_options *)opts)->how, n, in, out, 1);
}

/* The corners in the order left upper, right upper, right lower, left lower. */
static void perspective_draw(const perspective_options *o, picture p, tn_rng *rng, double from[8],
                             double to[8]) {
  const double right = (double)(p.width - 1), below = (double)(p.height - 1);
  const double corners[8] = {0, 0, right, 0, right, below, 0, below};
  int64_t across = (int64_t)(o->distortion_scale * (double)(p.width / 2)) + 1;
  int64_t down = (int64_t)(o->distortion_scale * (double)(p.height / 2)) + 1;
  for (int i = 0; i < 8; i++) {
    double way = (double)tn_rng_below(rng, i % 2 == 0 ? across : down);
    from[i] = corners[i];
    to[i] = corners[i] > 0 ? corners[i] - way : way;
  }
}

static tn_status random_perspective_apply(tn_transform_call *c, const void *opts) {
  const perspective_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  double from[8], to[8];
  geometry g = {.kind = GEOMETRY_PROJECTIVE, .how = &o->how, .mask_fill = o->mask_fill};
  int chosen = tn_rng_uniform(&rng) < o->p;
  perspective_draw(o, picture_of(&c->in_type[0]), &rng, from, to);
  if (!chosen || !projective_between(to, from, &g.places)) return geometry_copy(c);
  return geometry_apply(c, &g);
}

const tn_transform random_perspective_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_perspective",
                    "moves the corners of a picture at random (training only)", perspective_options, options),
    .training_only = 1,
    .types = "a picture of u8 or f32, then masks, boxes, points",
    .example = "transforms = random_perspective(0.3), to_float",
    .infer = random_perspective_infer,
    .apply = random_perspective_apply,
};
