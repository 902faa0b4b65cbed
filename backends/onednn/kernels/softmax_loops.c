/* backends/onednn/kernels/softmax_loops.c: see softmax.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/softmax.h"

#include <math.h>
#include <stdbool.h>

#include "backends/onednn/simd/vector_load.h"
#include "backends/onednn/simd/vector_math.h"

enum { TERMS = 64 /* of a sum in f32 */, STRETCH = TERMS * V_LANES /* elements */ };

V_INLINE float softmax_largest(int32_t dtype, const void *x, int64_t n) {
  vf largest = v_splat(-INFINITY);
  for (int64_t at = 0; at < n; at += V_LANES)
    largest = v_max(v_load_upto_as(dtype, x, at, n - at, -INFINITY), largest);
  return v_max_across(largest)[0];
}

/* The sum of exp(x - largest). Stores the exponentials in y, unless y is NULL. */
V_INLINE double softmax_exp_sum(int32_t dtype, const void *x, float *y, int64_t n, float largest) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    vf part = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += V_LANES) {
      vf e = v_exp(v_load_upto_as(dtype, x, at, n - at, -INFINITY) - largest);
      if (y != NULL) v_store_upto(y + at, e, n - at);
      part += v_keep_first(e, n - at, (vf){0});
    }
    sum += (double)v_sum_across(part)[0];
  }
  return sum;
}

V_INLINE double softmax_sum(int32_t dtype, const void *x, int64_t n) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    vf part = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += V_LANES) part += v_load_upto_as(dtype, x, at, n - at, 0);
    sum += (double)v_sum_across(part)[0];
  }
  return sum;
}

V_INLINE tn_softmax_sums softmax_sums(int32_t dtype, const void *x, int64_t n, int64_t pick, bool all) {
  tn_softmax_sums s = {.largest = softmax_largest(dtype, x, n)};
  s.exps = softmax_exp_sum(dtype, x, NULL, n, s.largest);
  s.picked = v_load_part_as(dtype, x, pick, 1, 0)[0];
  if (all) s.sum = softmax_sum(dtype, x, n);
  return s;
}

V_INLINE void softmax_row(int32_t dtype, const void *x, void *y, int64_t n) {
  float largest = softmax_largest(dtype, x, n);
  bool stored = dtype == TN_F32; /* the exponentials, in y */
  vf sum = v_splat((float)softmax_exp_sum(dtype, x, stored ? y : NULL, n, largest));
  for (int64_t at = 0; at < n; at += V_LANES) {
    vf e = stored ? v_load_upto_as(TN_F32, y, at, n - at, 0)
                  : v_exp(v_load_upto_as(dtype, x, at, n - at, -INFINITY) - largest);
    v_store_upto_as(dtype, y, at, n - at, e / sum);
  }
}

V_INLINE void softmax_log_row(int32_t dtype, const void *x, void *y, int64_t n) {
  float largest = softmax_largest(dtype, x, n),
        log_sum = (float)log(softmax_exp_sum(dtype, x, NULL, n, largest));
  for (int64_t at = 0; at < n; at += V_LANES)
    v_store_upto_as(dtype, y, at, n - at, (v_load_upto_as(dtype, x, at, n - at, 0) - largest) - log_sum);
}

#define SOFTMAX_LOOPS(dtype)                                                                                 \
  static tn_softmax_sums softmax_sums_##dtype(const void *x, int64_t n, int64_t pick, int32_t all) {         \
    return softmax_sums(dtype, x, n, pick, all);                                                             \
  }                                                                                                          \
  static void softmax_row_##dtype(const void *x, void *y, int64_t n) { softmax_row(dtype, x, y, n); }        \
  static void softmax_log_row_##dtype(const void *x, void *y, int64_t n) { softmax_log_row(dtype, x, y, n); }
SOFTMAX_LOOPS(TN_F32)
SOFTMAX_LOOPS(TN_BF16)
SOFTMAX_LOOPS(TN_F16)

#define SOFTMAX_EACH(name)                                                                                   \
  { [TN_F32] = name##_TN_F32, [TN_BF16] = name##_TN_BF16, [TN_F16] = name##_TN_F16 }
const tn_softmax_loops TN_LOOP(tn_loops_softmax) = {SOFTMAX_EACH(softmax_sums), SOFTMAX_EACH(softmax_row),
                                                    SOFTMAX_EACH(softmax_log_row)};
