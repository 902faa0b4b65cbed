/* plugins/transforms/elastic.c: moves each pixel by smooth noise (Simard et al., "Best practices for
 * convolutional neural networks", ICDAR 2003), as torchvision's ElasticTransform. */
#include <math.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct elastic_options {
  double alpha, sigma;
  sampling how;
  int64_t mask_fill;
} elastic_options;

static const tn_option options[] = {
    TN_OPT(elastic_options, alpha, TN_OPT_FLOAT, "50", ">= 0", "strength: half of it is the way of noise 1"),
    TN_OPT(elastic_options, sigma, TN_OPT_FLOAT, "5", "(0, 1000]",
           "standard deviation of the blur of the noise"),
    SAMPLING_OPTIONS_OF(elastic_options, "bilinear"), MASK_FILL_OPTION(elastic_options), TN_OPT_END};

static tn_status elastic_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  return geometry_infer_sampled(env, &((const elastic_options *)opts)->how, n, in, out, 1);
}

/* ---- noise ---- */

static int64_t elastic_mirrored(int64_t i, int64_t n) {
  int64_t period = n > 1 ? 2 * n - 2 : 1;
  i = (i % period + period) % period;
  return i < n ? i : period - i;
}

/* Weights of a kernel of 2 reach + 1 numbers. */
static int64_t elastic_weights(double sigma, float *weights) {
  int64_t reach = (int64_t)(8 * sigma + 1) / 2;
  double sum = 0;
  for (int64_t i = -reach; i <= reach; i++) sum += exp(-0.5 * (double)(i * i) / (sigma * sigma));
  for (int64_t i = -reach; weights != NULL && i <= reach; i++)
    weights[i + reach] = (float)(exp(-0.5 * (double)(i * i) / (sigma * sigma)) / sum);
  return reach;
}

/* One pass over `lines` lines of n numbers, which are `step` apart. */
static void elastic_blur(const float *in, int64_t n, int64_t step, int64_t lines, int64_t line,
                         const float *weights, int64_t reach, float *out) {
  for (int64_t l = 0; l < lines; l++)
    for (int64_t i = 0; i < n; i++) {
      float sum = 0;
      for (int64_t k = -reach; k <= reach; k++)
        sum += weights[k + reach] * in[l * line + elastic_mirrored(i + k, n) * step];
      out[l * line + i * step] = sum;
    }
}

/* Fills `to` with blurred noise times `by`; `other` is memory of the same size. */
static void elastic_draw(picture p, tn_rng *rng, const float *weights, int64_t reach, float by, float *other,
                         float *to) {
  int64_t area = p.height * p.width;
  for (int64_t i = 0; i < area; i++) to[i] = (float)tn_rng_between(rng, -1, 1) * by;
  elastic_blur(to, p.width, 1, p.height, p.width, weights, reach, other);
  elastic_blur(other, p.height, p.width, p.width, 1, weights, reach, to);
}

static tn_status elastic_apply(tn_transform_call *c, const void *opts) {
  const elastic_options *o = opts;
  picture p = picture_of(&c->in_type[0]);
  int64_t area = p.height * p.width, reach = elastic_weights(o->sigma, NULL);
  size_t kept = (size_t)(3 * area + 2 * reach + 2) * sizeof(float);
  kept = (kept + 7) / 8 * 8;
  float *memory = tn_transform_scratch(c, kept + geometry_scratch(&c->out_type[0]));
  if (memory == NULL) return TN_ENOMEM;
  float *across = memory, *down = memory + area, *other = memory + 2 * area, *weights = memory + 3 * area;
  tn_rng rng = tn_rng_at(c->key, 0);
  elastic_weights(o->sigma, weights);
  elastic_draw(p, &rng, weights, reach, (float)(o->alpha / 2), other, across);
  elastic_draw(p, &rng, weights, reach, (float)(o->alpha / 2), other, down);
  geometry g = {.kind = GEOMETRY_PROJECTIVE,
                .places = {{1, 0, 0, 0, 1, 0, 0, 0, 1}},
                .across = across,
                .down = down,
                .kept = kept,
                .how = &o->how,
                .mask_fill = o->mask_fill};
  return geometry_apply(c, &g);
}

const tn_transform elastic_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "elastic", "moves each pixel by smooth noise (training only)",
                    elastic_options, options),
    .training_only = 1,
    .types = "a picture of u8 or f32, then masks, boxes, points",
    .example = "transforms = elastic(alpha=30, sigma=4), to_float",
    .infer = elastic_infer,
    .apply = elastic_apply,
};
