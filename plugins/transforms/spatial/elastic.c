/* plugins/transforms/spatial/elastic.c: moves each pixel by smooth noise (Simard et al., "Best practices for
 * convolutional neural networks", ICDAR 2003), as torchvision's ElasticTransform. */
#include <math.h>
#include <string.h>

#include "plugins/transforms/geometry/geometry.h"

typedef struct elastic_options {
  double alpha, sigma;
  sampling how;
  int64_t mask_fill;
} elastic_options;

static const tn_option options[] = {TN_OPT(elastic_options, alpha, TN_OPT_FLOAT, "50", "[0, 1000000]",
                                           "strength: half of it is the way of noise 1"),
                                    TN_OPT(elastic_options, sigma, TN_OPT_FLOAT, "5", "(0, 1000]",
                                           "standard deviation of the blur of the noise"),
                                    SAMPLING_OPTIONS_OF(elastic_options, "bilinear"),
                                    MASK_FILL_OPTION(elastic_options), TN_OPT_END};

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

/* Adds weight times n numbers. */
VECTORIZED static void elastic_add(const float *restrict in, float weight, int64_t n, float *restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] += weight * in[i];
}

/* Along each row, which `line` holds with its mirrored borders. */
static void elastic_blur_rows(const float *in, picture p, const float *weights, int64_t reach, float *line,
                              float *out) {
  for (int64_t y = 0; y < p.height; y++, in += p.width, out += p.width) {
    for (int64_t i = -reach; i < p.width + reach; i++) line[i + reach] = in[elastic_mirrored(i, p.width)];
    memset(out, 0, (size_t)p.width * sizeof *out);
    for (int64_t k = 0; k <= 2 * reach; k++) elastic_add(line + k, weights[k], p.width, out);
  }
}

static void elastic_blur_columns(const float *in, picture p, const float *weights, int64_t reach,
                                 float *out) {
  for (int64_t y = 0; y < p.height; y++) {
    float *row = out + y * p.width;
    memset(row, 0, (size_t)p.width * sizeof *row);
    for (int64_t k = -reach; k <= reach; k++)
      elastic_add(in + elastic_mirrored(y + k, p.height) * p.width, weights[k + reach], p.width, row);
  }
}

/* Memory of elastic_apply: two fields of ways, one between the passes, the weights and a row. */
typedef struct elastic_memory {
  float *across, *down, *other, *weights, *line;
} elastic_memory;

/* Fills `to` with blurred noise times `by`. */
static void elastic_draw(picture p, tn_rng *rng, const elastic_memory *m, int64_t reach, float by,
                         float *to) {
  int64_t area = p.height * p.width;
  for (int64_t i = 0; i < area; i++) to[i] = (float)tn_rng_between(rng, -1, 1) * by;
  elastic_blur_rows(to, p, m->weights, reach, m->line, m->other);
  elastic_blur_columns(m->other, p, m->weights, reach, to);
}

static tn_status elastic_apply(tn_transform_call *c, const void *opts) {
  const elastic_options *o = opts;
  picture p = picture_of(&c->in_type[0]);
  int64_t area = p.height * p.width, reach = elastic_weights(o->sigma, NULL);
  size_t kept = (size_t)(3 * area + 4 * reach + 2 + p.width) * sizeof(float);
  kept = (kept + 7) / 8 * 8;
  float *memory = tn_transform_scratch(c, kept + geometry_scratch(&c->out_type[0]));
  if (memory == NULL) return TN_ENOMEM;
  elastic_memory m = {.across = memory, .down = memory + area, .other = memory + 2 * area};
  m.weights = memory + 3 * area;
  m.line = m.weights + 2 * reach + 1;
  tn_rng rng = tn_rng_at(c->key, 0);
  elastic_weights(o->sigma, m.weights);
  elastic_draw(p, &rng, &m, reach, (float)(o->alpha / 2), m.across);
  elastic_draw(p, &rng, &m, reach, (float)(o->alpha / 2), m.down);
  geometry g = {.kind = GEOMETRY_PROJECTIVE,
                .places = {{1, 0, 0, 0, 1, 0, 0, 0, 1}},
                .across = m.across,
                .down = m.down,
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
