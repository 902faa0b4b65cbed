/* plugins/transforms/photometric/gaussian_noise.c: adds normal noise, as torchvision's GaussianNoise. */
#include <math.h>
#include <string.h>

#include "plugins/transforms/transforms.h"

typedef struct noise_options {
  double mean, sigma;
  int32_t clip;
} noise_options;

static const tn_option options[] = {
    TN_OPT(noise_options, mean, TN_OPT_FLOAT, "0", NULL, "of the noise; 1 is the range of bytes"),
    TN_OPT_WITH(noise_options, sigma, TN_OPT_FLOAT, TN_OPT_SCHEDULABLE, "0.1", ">= 0",
                "standard deviation; 1 is the range of bytes"),
    TN_OPT(noise_options, clip, TN_OPT_FLAG, "yes", NULL, "results of f32 are cut to 0 .. 1"), TN_OPT_END};

static tn_status gaussian_noise_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                      tn_type *out) {
  (void)opts;
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  TN_TRY(picture_check(env, n, in, 0));
  return picture_check_numbers(env, n, in, 0);
}

static void noise_field(const noise_options *o, const tn_type *type, const void *in, tn_rng *rng, void *out) {
  int64_t n = tn_type_count(type);
  for (int64_t i = 0; i < n; i++) {
    double by = o->mean + o->sigma * (double)random_normal(rng);
    if (type->dtype == TN_U8) {
      double x = rint(((const uint8_t *)in)[i] + 255 * by);
      ((uint8_t *)out)[i] = (uint8_t)fmin(fmax(x, 0), 255);
    } else {
      float x = ((const float *)in)[i] + (float)by;
      ((float *)out)[i] = o->clip ? fminf(fmaxf(x, 0), 1) : x;
    }
  }
}

static tn_status gaussian_noise_apply(tn_transform_call *c, const void *opts) {
  tn_rng rng = tn_rng_at(c->key, 0);
  for (int32_t k = 0; k < c->n; k++) {
    if (field_kind(k, &c->in_type[k]) == FIELD_PICTURE)
      noise_field(opts, &c->in_type[k], c->in[k], &rng, c->out[k]);
    else
      memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  }
  return TN_OK;
}

const tn_transform gaussian_noise_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "gaussian_noise", "adds normal noise (training only)",
                    noise_options, options),
    .training_only = 1,
    .types = "u8 or f32 [channels, height, width]",
    .example = "transforms = to_float, gaussian_noise(sigma=0.05)",
    .infer = gaussian_noise_infer,
    .apply = gaussian_noise_apply,
};
