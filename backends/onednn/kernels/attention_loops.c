/* backends/onednn/kernels/attention_loops.c: see attention.h. */
#include "backends/onednn/kernels/attention.h"

#include "backends/onednn/simd/partial.h"
#include "backends/onednn/simd/vector_math.h"

enum { TILE = TN_ATTENTION_TILE, STRIP = TN_ATTENTION_STRIP };

/* ---- vectors ------------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
#define LANE_NUMBERS ((vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#elif defined(__AVX2__)
#define LANE_NUMBERS ((vi){0, 1, 2, 3, 4, 5, 6, 7})
#else
#define LANE_NUMBERS ((vi){0, 1, 2, 3})
#endif

/* All lanes' sum, and their largest, in every lane. */
V_INLINE vf sum_across(vf v) {
#pragma GCC unroll 4
  for (int32_t s = V_LANES / 2; s > 0; s /= 2) v += __builtin_shuffle(v, LANE_NUMBERS ^ s);
  return v;
}
V_INLINE vf largest_across(vf v) {
#pragma GCC unroll 4
  for (int32_t s = V_LANES / 2; s > 0; s /= 2) v = v_larger(v, __builtin_shuffle(v, LANE_NUMBERS ^ s));
  return v;
}

/* x in the first n lanes, `other` in those behind. */
V_INLINE vf first_lanes(vf x, int64_t n, vf other) {
  if (n >= V_LANES) return x;
  vf at = __builtin_convertvector(LANE_NUMBERS, vf);
  return v_pick(v_lt(at, v_all((float)n)), x, other);
}

/* e^x of numbers that are not much above 0: without the steps that reach to infinity, and 0 where the result
 * would be subnormal or x is minus infinity. NaN stays. The polynomial is v_exp's. */
V_INLINE vf exp_below(vf x) {
  vf t = x * 0x1.715476p+0f + V_NEAREST;
  vf f = t - V_NEAREST;
  vf r = (x - f * 0x1.62e4p-1f) + f * -0x1.7f7d1cp-20f;
  vf p = 0x1.6db47ap-10f * r + 0x1.123b92p-7f;
  p = p * r + 0x1.55545ep-5f;
  p = p * r + 0x1.55548ep-3f;
  p = p * r + 0.5f;
  vf y = (p * (r * r) + r) + 1.0f;
  y *= (vf)(((vu)t - V_NEAREST_BITS + 127u) << 23);
  return v_pick(v_lt(x, v_all(-87.0f)), (vf){0}, y);
}

/* ---- softmax ------------------------------------------------------------------------------------- */

/* Scales a row, and hides what it does not see. Returns the largest. */
V_INLINE vf scale_row(const tn_attention_strip *t, int64_t i, float *row) {
  vf most = v_all(-INFINITY), hidden = v_all(-INFINITY);
  for (int64_t j = 0; j < t->columns; j += V_LANES) {
    vf x = first_lanes(v_get(row + j) * t->scale, t->sees[i] - j, hidden);
    v_put(row + j, x);
    most = v_larger(most, x);
  }
  return largest_across(most);
}

V_INLINE vf exp_row(float *row, int64_t columns, vf minus) {
  vf sum = {0};
  for (int64_t j = 0; j < columns; j += V_LANES) {
    vf e = exp_below(v_get(row + j) - minus);
    sum += e;
    v_put(row + j, e);
  }
  return sum_across(sum);
}

static void soften(const tn_attention_strip *t, float *largest, float *sum, float *fade) {
  float most[STRIP] = {0}, more[STRIP] = {0};
  for (int64_t i = 0; i < t->rows; i++) {
    float *row = t->scores + i * TILE;
    vf m = v_larger(scale_row(t, i, row), v_all(largest[i]));
    most[i] = m[0];
    more[i] = exp_row(row, t->columns, m)[0];
  }
  for (int32_t i = 0; i < STRIP; i += V_LANES) {
    vf m = v_get(most + i), f = v_exp(v_get(largest + i) - m);
    v_put(fade + i, f);
    v_put(sum + i, v_get(sum + i) * f + v_get(more + i));
    v_put(largest + i, m);
  }
}

static void recall(const tn_attention_strip *t, const float *lse) {
  for (int64_t i = 0; i < t->rows; i++) {
    float *row = t->scores + i * TILE;
    vf minus = v_all(lse[i]);
    for (int64_t j = 0; j < t->columns; j += V_LANES)
      v_put(row + j, first_lanes(exp_below(v_get(row + j) * t->scale - minus), t->sees[i] - j, (vf){0}));
  }
}

static void differ(const tn_attention_strip *p, float *d, const float *delta) {
  for (int64_t i = 0; i < p->rows; i++) {
    const float *row = p->scores + i * TILE;
    vf minus = v_all(delta[i]);
    for (int64_t j = 0; j < p->columns; j += V_LANES) {
      float *at = d + i * TILE + j;
      v_put(at, v_get(row + j) * (v_get(at) - minus) * p->scale);
    }
  }
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static void gather(float *y, int64_t step, const float *more, const float *fade, int64_t n, int64_t width) {
  for (int64_t i = 0; i < n; i++, y += step, more += width) {
    vf f = v_all(fade != NULL ? fade[i] : 1.0f);
    for (int64_t j = 0; j < width; j += V_LANES)
      v_put_most(y + j, f * v_get_most(y + j, width - j) + v_get_most(more + j, width - j), width - j);
  }
}

static void finish(float *y, int64_t step, float *lse, const float *largest, const float *sum, int64_t n,
                   int64_t width) {
  for (int32_t i = 0; i < n; i += V_LANES)
    v_put_most(lse + i, v_get(largest + i) + v_log(v_get(sum + i)), n - i);
  for (int64_t i = 0; i < n; i++, y += step) {
    vf by = v_all(1.0f / sum[i]);
    for (int64_t j = 0; j < width; j += V_LANES)
      v_put_most(y + j, v_get_most(y + j, width - j) * by, width - j);
  }
}

static void dot(const float *x, int64_t x_step, const float *y, int64_t y_step, float *delta, int64_t n,
                int64_t width) {
  for (int64_t i = 0; i < n; i++, x += x_step, y += y_step) {
    vf sum = {0};
    for (int64_t j = 0; j < width; j += V_LANES)
      sum += v_get_most(x + j, width - j) * v_get_most(y + j, width - j);
    delta[i] = sum_across(sum)[0];
  }
}

extern const tn_attention_loops TN_LOOP(tn_loops_attention);
const tn_attention_loops TN_LOOP(tn_loops_attention) = {soften, recall, differ, gather, finish, dot};
