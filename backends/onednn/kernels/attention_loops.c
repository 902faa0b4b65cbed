/* backends/onednn/kernels/attention_loops.c: see attention.h. */
#include "backends/onednn/kernels/attention.h"

#include "backends/onednn/simd/vector_load.h"
#include "backends/onednn/simd/vector_math.h"

enum { TILE = TN_ATTENTION_TILE, STRIP = TN_ATTENTION_STRIP };

/* e^x for x that is at most a little above 0: without the steps that reach infinity, and 0 where the result
 * would be subnormal or x is minus infinity. NaN stays NaN. */
V_INLINE vf attention_exp(vf x) {
  vf t = x * TN_LOG2_E + TN_NEAREST;
  vf f = t - TN_NEAREST;
  vf r = (x - f * TN_LN2_HIGH) + f * -TN_LN2_LOW;
  vf y = v_exp_small(r);
  y *= (vf)(((vu)t - TN_NEAREST_BITS + 127u) << 23);
  return v_select(v_lt(x, v_splat(-87.0f)), (vf){0}, y);
}

/* ---- masks --------------------------------------------------------------------------------------- */

/* The mask of the keys of a row, minus infinity for those that the mask hides. */
V_INLINE void attention_read_mask(const tn_attention_hiding *t, int64_t i, float *bias) {
  const float *floats = t->floats + (t->floats != NULL ? i * t->row : 0);
  const uint8_t *bools = t->bools + (t->bools != NULL ? i * t->row : 0);
  int64_t j = 0;
  for (; t->floats != NULL && t->key == 1 && j + V_LANES <= t->keys; j += V_LANES) {
    vf m = v_load(floats + j);
    v_store(bias + j, v_select(v_gt(m, v_splat(TN_ATTENTION_HIDDEN)), m, v_splat(-INFINITY)));
  }
  for (; t->floats != NULL && j < t->keys; j++)
    bias[j] = floats[j * t->key] > TN_ATTENTION_HIDDEN ? floats[j * t->key] : -INFINITY;
  for (; t->bools != NULL && j < t->keys; j++) bias[j] = bools[j * t->key] != 0 ? 0 : -INFINITY;
}

static void attention_hide_keys(const tn_attention_hiding *t) {
  _Alignas(64) float bias[TILE] = {0};
  for (int64_t i = 0; i < t->rows; i++) {
    float *row = t->scores + i * TILE;
    if (t->floats != NULL || t->bools != NULL) attention_read_mask(t, i, bias);
    for (int64_t j = 0; j < t->columns; j += V_LANES) {
      vf b = v_load(bias + j), x = v_load(row + j) * t->scale + b;
      x = v_select(v_lt(b, v_splat(TN_ATTENTION_HIDDEN)), v_splat(TN_ATTENTION_HIDDEN), x);
      x = v_keep_first(x, t->end[i] - j, v_splat(TN_ATTENTION_HIDDEN));
      v_store(row + j, x);
    }
    for (int64_t j = 0; j < t->begin[i]; j++) row[j] = TN_ATTENTION_HIDDEN;
  }
}

/* ---- softmax ------------------------------------------------------------------------------------- */

/* Scales a row and masks hidden keys with minus infinity. Returns the largest score. */
V_INLINE vf attention_scale_row(const tn_attention_strip *t, int64_t i, float *row) {
  vf most = v_splat(-INFINITY), hidden = v_splat(-INFINITY);
  for (int64_t j = 0; j < t->columns; j += V_LANES) {
    vf x = v_keep_first(v_load(row + j) * t->scale, t->visible[i] - j, hidden);
    v_store(row + j, x);
    most = v_max(most, x);
  }
  return v_max_across(most);
}

V_INLINE vf attention_exp_row(float *row, int64_t columns, vf minus) {
  vf sum = {0};
  for (int64_t j = 0; j < columns; j += V_LANES) {
    vf e = attention_exp(v_load(row + j) - minus);
    sum += e;
    v_store(row + j, e);
  }
  return v_sum_across(sum);
}

static void attention_softmax_step(const tn_attention_strip *t, float *largest, float *sum, float *rescale) {
  float most[STRIP] = {0}, more[STRIP] = {0};
  for (int64_t i = 0; i < t->rows; i++) {
    float *row = t->scores + i * TILE;
    vf m = v_max(attention_scale_row(t, i, row), v_splat(largest[i]));
    most[i] = m[0];
    more[i] = attention_exp_row(row, t->columns, m)[0];
  }
  for (int32_t i = 0; i < STRIP; i += V_LANES) {
    vf m = v_load(most + i), f = v_exp(v_load(largest + i) - m);
    v_store(rescale + i, f);
    v_store(sum + i, v_load(sum + i) * f + v_load(more + i));
    v_store(largest + i, m);
  }
}

/* A row without visible keys stays 0. */
static void attention_divide_by_sum(float *row, int64_t columns, vf sums) {
  float sum = v_sum_across(sums)[0];
  vf by = v_splat(sum == 0 ? 0.0f : 1.0f / sum);
  for (int64_t j = 0; j < columns; j += V_LANES) v_store(row + j, v_load(row + j) * by);
}

static void attention_probabilities(const tn_attention_strip *t, const float *lse, bool whole) {
  for (int64_t i = 0; i < t->rows; i++) {
    float *row = t->scores + i * TILE;
    vf minus = v_splat(lse[i]), sum = {0};
    for (int64_t j = 0; j < t->columns; j += V_LANES) {
      vf e = v_keep_first(attention_exp(v_load(row + j) * t->scale - minus), t->visible[i] - j, (vf){0});
      sum += e;
      v_store(row + j, e);
    }
    if (whole) attention_divide_by_sum(row, t->columns, sum);
  }
}

static void attention_score_grad(const tn_attention_strip *p, float *d, const float *delta) {
  for (int64_t i = 0; i < p->rows; i++) {
    const float *row = p->scores + i * TILE;
    vf minus = v_splat(delta[i]);
    for (int64_t j = 0; j < p->columns; j += V_LANES) {
      float *at = d + i * TILE + j;
      v_store(at, v_load(row + j) * (v_load(at) - minus) * p->scale);
    }
  }
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static void attention_accumulate(float *y, int64_t step, const float *more, const float *rescale, int64_t n,
                                 int64_t width) {
  for (int64_t i = 0; i < n; i++, y += step, more += width) {
    vf f = v_splat(rescale != NULL ? rescale[i] : 1.0f);
    for (int64_t j = 0; j < width; j += V_LANES)
      v_store_upto(y + j, f * v_load_upto(y + j, width - j) + v_load_upto(more + j, width - j), width - j);
  }
}

static void attention_normalize(float *y, int64_t step, float *lse, const float *largest, const float *sum,
                                int64_t n, int64_t width) {
  for (int32_t i = 0; i < n; i += V_LANES)
    v_store_upto(lse + i, v_load(largest + i) + v_log(v_load(sum + i)), n - i);
  for (int64_t i = 0; i < n; i++, y += step) {
    vf by = v_splat(1.0f / sum[i]);
    for (int64_t j = 0; j < width; j += V_LANES)
      v_store_upto(y + j, v_load_upto(y + j, width - j) * by, width - j);
  }
}

static void attention_row_dots(const float *x, int64_t x_step, const float *y, int64_t y_step, float *delta,
                               int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++, x += x_step, y += y_step) {
    vf sum = {0};
    for (int64_t j = 0; j < width; j += V_LANES)
      sum += v_load_upto(x + j, width - j) * v_load_upto(y + j, width - j);
    delta[i] = v_sum_across(sum)[0];
  }
}

extern const tn_attention_loops TN_LOOP(tn_loops_attention);
const tn_attention_loops TN_LOOP(tn_loops_attention) = {.hide = attention_hide_keys,
                                                        .softmax_step = attention_softmax_step,
                                                        .probabilities = attention_probabilities,
                                                        .score_grad = attention_score_grad,
                                                        .accumulate = attention_accumulate,
                                                        .normalize = attention_normalize,
                                                        .row_dots = attention_row_dots};
