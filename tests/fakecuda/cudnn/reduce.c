/* tests/fakecuda/cudnn/reduce.c: reductions, and the statistics of batch norms. */
#include <math.h>
#include <stdlib.h>
#include "tests/fakecuda/cudnn/run.h"
#include "tests/fakecuda/cudnn/walk.h"

/* ---- reductions ---- */

static double begin_of(int32_t mode) {
  switch (mode) {
  case CUDNN_REDUCE_TENSOR_MUL:
  case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return 1;
  case CUDNN_REDUCE_TENSOR_MIN: return INFINITY;
  case CUDNN_REDUCE_TENSOR_MAX: return -INFINITY;
  default: return 0;
  }
}

static double join(int32_t mode, double sum, double x) {
  switch (mode) {
  case CUDNN_REDUCE_TENSOR_MUL: return sum * x;
  case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return x == 0 ? sum : sum * x;
  case CUDNN_REDUCE_TENSOR_MIN: return x < sum || x != x ? x : sum;
  case CUDNN_REDUCE_TENSOR_MAX: return x > sum || x != x ? x : sum;
  case CUDNN_REDUCE_TENSOR_AMAX: return fabs(x) > sum || x != x ? fabs(x) : sum;
  case CUDNN_REDUCE_TENSOR_NORM1: return sum + fabs(x);
  case CUDNN_REDUCE_TENSOR_NORM2: return sum + x * x;
  default: return sum + x;
  }
}

static float end_of(int32_t mode, double sum, int64_t n) {
  if (mode == CUDNN_REDUCE_TENSOR_AVG) return (float)(sum / (double)n);
  return (float)(mode == CUDNN_REDUCE_TENSOR_NORM2 ? sqrt(sum) : sum);
}

static void join_row(int32_t mode, double *sum, int64_t step, const float *x, int64_t x_step, int64_t n) {
  for (int64_t i = 0; i < n; i++) sum[i * step] = join(mode, sum[i * step], (double)x[i * x_step]);
}

bool fakednn_run_reduction(const fakednn_node *node, const fakednn_values *values) {
  const fakednn_tensor *x = fakednn_in_slot(node, values, FAKEDNN_RED_X);
  const fakednn_tensor *y = fakednn_in_slot(node, values, FAKEDNN_RED_Y), *both[] = {x, y};
  int64_t span = fakednn_span(y), n = fakednn_elements(x) / fakednn_elements(y);
  double *sums = malloc((size_t)span * sizeof(double));
  float *to = fakednn_data(node, values, FAKEDNN_RED_Y);
  fakednn_walk w;
  if (!sums) return false;
  for (int64_t i = 0; i < span; i++) sums[i] = begin_of(node->mode);
  fakednn_walk_begin(&w, x, both, 2);
  do {
    join_row(node->mode, sums + w.offset[1], w.step[1],
             fakednn_data(node, values, FAKEDNN_RED_X) + w.offset[0], w.step[0], w.length);
  } while (fakednn_walk_next(&w));
  for (int64_t i = 0; i < span; i++) to[i] = end_of(node->mode, sums[i], n);
  free(sums);
  return true;
}

/* ---- sums of channels ---- */

/* Adds a x b and a to sums[2][channels] for each channel; `mean` and `scale`, which may be NULL, turn b into
 * (b - mean) scale first. */
typedef struct channel_sums {
  const fakednn_tensor *a, *b;
  const float *a_data, *b_data, *mean, *scale;
  double *sums;
} channel_sums;

static void add_channels(const channel_sums *s) {
  const fakednn_tensor *both[] = {s->a, s->b};
  int64_t channels = s->a->dims[1];
  fakednn_walk w;
  fakednn_walk_begin(&w, s->a, both, 2);
  do {
    int64_t first = fakednn_walk_index(&w, 1), along = w.row_axis == 1;
    for (int64_t i = 0; i < w.length; i++) {
      int64_t c = first + along * i;
      double a = (double)s->a_data[w.offset[0] + i * w.step[0]];
      double b = (double)s->b_data[w.offset[1] + i * w.step[1]];
      if (s->mean) b = (b - (double)s->mean[c]) * (double)s->scale[c];
      s->sums[c] += a;
      s->sums[channels + c] += a * b;
    }
  } while (fakednn_walk_next(&w));
}

/* Values of channels lie next to each other unless their tensor has another stride. */
static int64_t channel_step(const fakednn_node *node, const fakednn_values *values, int slot) {
  const fakednn_tensor *t = fakednn_in_slot(node, values, slot);
  for (int i = 0; t && i < t->rank; i++) {
    if (t->dims[i] > 1) return t->strides[i];
  }
  return 1;
}

static double channel_of(const fakednn_node *node, const fakednn_values *values, int slot, int64_t c,
                         double otherwise) {
  const float *data = fakednn_data(node, values, slot);
  return data ? (double)data[c * channel_step(node, values, slot)] : otherwise;
}

static void set_channel(const fakednn_node *node, const fakednn_values *values, int slot, int64_t c,
                        double value) {
  float *data = fakednn_data(node, values, slot);
  if (data) data[c * channel_step(node, values, slot)] = (float)value;
}

bool fakednn_run_statistics(const fakednn_node *node, const fakednn_values *values) {
  const fakednn_tensor *x = fakednn_in_slot(node, values, FAKEDNN_STATS_X);
  const float *data = fakednn_data(node, values, FAKEDNN_STATS_X);
  int64_t channels = x->dims[1];
  double *sums = calloc((size_t)(2 * channels), sizeof(double));
  if (!sums) return false;
  add_channels(&(channel_sums){x, x, data, data, NULL, NULL, sums});
  for (int64_t c = 0; c < channels; c++) {
    set_channel(node, values, FAKEDNN_STATS_SUM, c, sums[c]);
    set_channel(node, values, FAKEDNN_STATS_SQUARES, c, sums[channels + c]);
  }
  free(sums);
  return true;
}

/* ---- batch norm ---- */

static void finalize_channel(const fakednn_node *n, const fakednn_values *v, int64_t c) {
  double count = channel_of(n, v, FAKEDNN_BNF_COUNT, 0, 1),
         epsilon = channel_of(n, v, FAKEDNN_BNF_EPSILON, 0, 0);
  double factor = channel_of(n, v, FAKEDNN_BNF_FACTOR, 0, 1);
  double mean = channel_of(n, v, FAKEDNN_BNF_SUM, c, 0) / count;
  double variance = channel_of(n, v, FAKEDNN_BNF_SQUARES, c, 0) / count - mean * mean;
  if (variance < 0) variance = 0;
  double inverse = 1 / sqrt(variance + epsilon), scale = channel_of(n, v, FAKEDNN_BNF_SCALE, c, 1) * inverse;
  double unbiased = count > 1 ? variance * count / (count - 1) : variance;
  double mean_before = channel_of(n, v, FAKEDNN_BNF_MEAN_BEFORE, c, 0);
  double variance_before = channel_of(n, v, FAKEDNN_BNF_VARIANCE_BEFORE, c, 0);
  set_channel(n, v, FAKEDNN_BNF_MEAN, c, mean);
  set_channel(n, v, FAKEDNN_BNF_INVERSE_DEVIATION, c, inverse);
  set_channel(n, v, FAKEDNN_BNF_EQ_SCALE, c, scale);
  set_channel(n, v, FAKEDNN_BNF_EQ_BIAS, c, channel_of(n, v, FAKEDNN_BNF_BIAS, c, 0) - mean * scale);
  set_channel(n, v, FAKEDNN_BNF_MEAN_AFTER, c, (1 - factor) * mean_before + factor * mean);
  set_channel(n, v, FAKEDNN_BNF_VARIANCE_AFTER, c, (1 - factor) * variance_before + factor * unbiased);
}

bool fakednn_run_bn_finalize(const fakednn_node *node, const fakednn_values *values) {
  int64_t channels = fakednn_elements(fakednn_in_slot(node, values, FAKEDNN_BNF_SUM));
  for (int64_t c = 0; c < channels; c++) finalize_channel(node, values, c);
  return true;
}

/* dx = eq_dy_scale dy + eq_x_scale x + eq_bias is the gradient of the batch norm's operand. */
static void spread_channel(const fakednn_node *n, const fakednn_values *v, int64_t c, double dbias,
                           double dscale, double count) {
  double mean = channel_of(n, v, FAKEDNN_BNB_MEAN, c, 0);
  double inverse = channel_of(n, v, FAKEDNN_BNB_INVERSE_DEVIATION, c, 1);
  double scale = channel_of(n, v, FAKEDNN_BNB_SCALE, c, 1) * inverse,
         of_x = -scale * inverse * dscale / count;
  set_channel(n, v, FAKEDNN_BNB_DBIAS, c, dbias);
  set_channel(n, v, FAKEDNN_BNB_DSCALE, c, dscale);
  set_channel(n, v, FAKEDNN_BNB_EQ_DY_SCALE, c, scale);
  set_channel(n, v, FAKEDNN_BNB_EQ_X_SCALE, c, of_x);
  set_channel(n, v, FAKEDNN_BNB_EQ_BIAS, c, -scale * dbias / count - of_x * mean);
}

bool fakednn_run_bn_backward(const fakednn_node *node, const fakednn_values *values) {
  const fakednn_tensor *x = fakednn_in_slot(node, values, FAKEDNN_BNB_X);
  int64_t channels = x->dims[1];
  double count = (double)(fakednn_elements(x) / channels);
  double *sums = calloc((size_t)(2 * channels), sizeof(double));
  float *statistics = malloc((size_t)(2 * channels) * sizeof(float));
  bool reserved = sums && statistics;
  for (int64_t c = 0; reserved && c < channels; c++) {
    statistics[c] = (float)channel_of(node, values, FAKEDNN_BNB_MEAN, c, 0);
    statistics[channels + c] = (float)channel_of(node, values, FAKEDNN_BNB_INVERSE_DEVIATION, c, 1);
  }
  if (reserved) {
    add_channels(&(channel_sums){
        fakednn_in_slot(node, values, FAKEDNN_BNB_DY), x, fakednn_data(node, values, FAKEDNN_BNB_DY),
        fakednn_data(node, values, FAKEDNN_BNB_X), statistics, statistics + channels, sums});
  }
  for (int64_t c = 0; reserved && c < channels; c++)
    spread_channel(node, values, c, sums[c], sums[channels + c], count);
  free(sums);
  free(statistics);
  return reserved;
}
