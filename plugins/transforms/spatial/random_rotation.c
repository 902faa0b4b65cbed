/* plugins/transforms/spatial/random_rotation.c: turns a picture around its centre, as torchvision's
 * RandomRotation.
 */
#include "plugins/transforms/geometry/geometry.h"

typedef struct rotation_options {
  tn_floats degrees;
  sampling how;
  int64_t mask_fill;
} rotation_options;

static const tn_option options[] = {
    TN_OPT(rotation_options, degrees, TN_OPT_FLOATS, NULL, "[-36000, 36000]",
           "x: an angle from -x to x; two numbers: from the first to the second, counter-clockwise"),
    SAMPLING_OPTIONS(rotation_options), MASK_FILL_OPTION(rotation_options), TN_OPT_END};

static tn_status random_rotation_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                       tn_type *out) {
  const rotation_options *o = opts;
  int one = o->degrees.n == 1 && o->degrees.v[0] >= 0;
  if (!one && !(o->degrees.n == 2 && o->degrees.v[0] <= o->degrees.v[1]))
    return tn_fail(env, TN_EINVAL, "degrees",
                   "degrees must be one number of at least 0, or two numbers, the smaller one first");
  return geometry_infer_sampled(env, &o->how, n, in, out, 0);
}

static tn_status random_rotation_apply(tn_transform_call *c, const void *opts) {
  const rotation_options *o = opts;
  const tn_floats *range = &o->degrees;
  tn_rng rng = tn_rng_at(c->key, 0);
  double low = range->n == 2 ? range->v[0] : -range->v[0], high = range->v[range->n - 1];
  geometry g = {.kind = GEOMETRY_AFFINE,
                .by = affine_rotation(tn_rng_between(&rng, low, high)),
                .how = &o->how,
                .mask_fill = o->mask_fill};
  return geometry_apply(c, &g);
}

const tn_transform random_rotation_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_rotation",
                    "turns a picture by a random angle (training only)", rotation_options, options),
    .training_only = 1,
    .types = "a picture of u8 or f32, then masks, boxes, points",
    .example = "transforms = random_rotation(10), to_float",
    .infer = random_rotation_infer,
    .apply = random_rotation_apply,
};
