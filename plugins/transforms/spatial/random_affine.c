/* plugins/transforms/spatial/random_affine.c: turns, moves, scales and shears a picture at random, as
 * torchvision's RandomAffine. */
#include <math.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct random_affine_options {
  tn_floats degrees, translate, scale, shear;
  sampling how;
  int64_t mask_fill;
} random_affine_options;

static const tn_option options[] = {
    TN_OPT(random_affine_options, degrees, TN_OPT_FLOATS, NULL, "[-36000, 36000]",
           "x: an angle from -x to x; two numbers: from the first to the second, clockwise"),
    TN_OPT(random_affine_options, translate, TN_OPT_FLOATS, "[0, 0]", "[0, 1]",
           "greatest way across and down, as parts of width and height"),
    TN_OPT(random_affine_options, scale, TN_OPT_FLOATS, "[1, 1]", "[0.01, 100]", "least and greatest factor"),
    TN_OPT(random_affine_options, shear, TN_OPT_FLOATS, "0", "[-80, 80]",
           "degrees; x: across, from -x to x; two numbers: across; four: across, then down"),
    SAMPLING_OPTIONS(random_affine_options),
    MASK_FILL_OPTION(random_affine_options),
    TN_OPT_END};

static tn_status random_affine_check_degrees(tn_env *env, const char *name, const tn_floats *list) {
  int even = list->n == 2 || (list->n == 4 && name[0] == 's');
  int in_order = even && list->v[0] <= list->v[1] && (list->n == 2 || list->v[2] <= list->v[3]);
  if (in_order || (list->n == 1 && list->v[0] >= 0)) return TN_OK;
  return tn_fail(env, TN_EINVAL, name,
                 "%s must be one number of at least 0, or pairs of numbers, the smaller one first", name);
}

static tn_status random_affine_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                     tn_type *out) {
  const random_affine_options *o = opts;
  TN_TRY(random_affine_check_degrees(env, "degrees", &o->degrees));
  TN_TRY(random_affine_check_degrees(env, "shear", &o->shear));
  TN_TRY(range_check(env, "scale", &o->scale));
  if (o->translate.n != 2)
    return tn_fail(env, TN_EINVAL, "translate", "translate has %lld numbers, expected two: across and down",
                   (long long)o->translate.n);
  return geometry_infer_sampled(env, &o->how, n, in, out, 1);
}

static double random_affine_angle(tn_rng *rng, const tn_floats *list, int64_t first) {
  if (list->n == 1) return tn_rng_between(rng, -list->v[0], list->v[0]);
  return first < list->n ? tn_rng_between(rng, list->v[first], list->v[first + 1]) : 0;
}

/* Whole pixels of at most `most`. */
static double random_affine_way(tn_rng *rng, double most) { return rint(tn_rng_between(rng, -most, most)); }

static tn_status random_affine_apply(tn_transform_call *c, const void *opts) {
  const random_affine_options *o = opts;
  picture p = picture_of(&c->in_type[0]);
  tn_rng rng = tn_rng_at(c->key, 0);
  double degrees = random_affine_angle(&rng, &o->degrees, 0);
  double across = random_affine_way(&rng, o->translate.v[0] * (double)p.width);
  double down = random_affine_way(&rng, o->translate.v[1] * (double)p.height);
  double scale = tn_rng_between(&rng, o->scale.v[0], o->scale.v[1]);
  double shear = random_affine_angle(&rng, &o->shear, 0);
  double shear_down = o->shear.n == 4 ? random_affine_angle(&rng, &o->shear, 2) : 0;
  geometry g = {.kind = GEOMETRY_AFFINE,
                .by = affine_of(degrees, across, down, scale, shear, shear_down),
                .how = &o->how,
                .mask_fill = o->mask_fill};
  return geometry_apply(c, &g);
}

const tn_transform random_affine_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_affine",
                    "turns, moves, scales and shears a picture at random (training only)",
                    random_affine_options, options),
    .training_only = 1,
    .types = "a picture of u8 or f32, then masks, boxes, points",
    .example = "transforms = random_affine(10, translate=[0.1, 0.1], scale=[0.9, 1.1]), to_float",
    .infer = random_affine_infer,
    .apply = random_affine_apply,
};
