/* plugins/transforms/random_rotation.c: turns a picture around its centre, as torchvision's RandomRotation.
 */
#include "plugins/transforms/transforms.h"

typedef struct rotation_options {
  tn_floats degrees;
  sampling how;
} rotation_options;

static const tn_option options[] = {
    TN_OPT(rotation_options, degrees, TN_OPT_FLOATS, NULL, "[-36000, 36000]",
           "x: an angle from -x to x; two numbers: from the first to the second, counter-clockwise"),
    SAMPLING_OPTIONS(rotation_options), TN_OPT_END};

static tn_status random_rotation_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                       tn_type *out) {
  const rotation_options *o = opts;
  int one = o->degrees.n == 1 && o->degrees.v[0] >= 0;
  if (!one && !(o->degrees.n == 2 && o->degrees.v[0] <= o->degrees.v[1]))
    return tn_fail(env, TN_EINVAL, "degrees",
                   "degrees must be one number of at least 0, or two numbers, the smaller one first");
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  tn_status status = picture_check(env, n, in, 0);
  if (status == TN_OK) status = picture_check_numbers(env, n, in);
  return status == TN_OK ? sampling_check(env, &o->how, n, in) : status;
}

static tn_status random_rotation_apply(tn_transform_call *c, const void *opts) {
  const rotation_options *o = opts;
  const tn_floats *range = &o->degrees;
  tn_rng rng = tn_rng_at(c->key, 0);
  double low = range->n == 2 ? range->v[0] : -range->v[0], high = range->v[range->n - 1];
  affine by = affine_rotation(tn_rng_between(&rng, low, high));
  for (int32_t k = 0; k < c->n; k++) {
    picture p = picture_of(&c->in_type[k]);
    int64_t *places = tn_transform_scratch(c, (size_t)(p.width + 1) * sizeof(*places));
    if (places == NULL) return TN_ENOMEM;
    affine_apply(&by, p, c->in_type[k].dtype == TN_U8, c->in[k], &o->how, places, c->out[k]);
  }
  return TN_OK;
}

const tn_transform random_rotation_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "random_rotation",
                    "turns a picture by a random angle (training only)", rotation_options, options),
    .training_only = 1,
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = random_rotation(10), to_float",
    .infer = random_rotation_infer,
    .apply = random_rotation_apply,
};
