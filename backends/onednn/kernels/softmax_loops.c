#include "backends/onednn/kernels/softmax.h"

#include <math.h>
#include <stdbool.h>

#include "backends/onednn/simd/lanes.h"
#include "backends/onednn/simd/vector_math.h"

enum { TERMS = 64 /* of a sum in f32 */, STRETCH = TERMS * LANES /* elements */ };

/* Lanes are two vectors where vectors are narrower than a block of channels. */
LANE_INLINE lane_f32 lane_exp(lane_f32 x) {
  vf parts[LANES / V_LANES];
  memcpy(parts, &x, sizeof parts);
  for (int32_t i = 0; i < LANES / V_LANES; i++) parts[i] = v_exp(parts[i]);
  memcpy(&x, parts, sizeof parts);
  return x;
}

LANE_INLINE lane_f32 load_some(int32_t dtype, const void *x, int64_t at, int64_t n, float fill) {
  return n >= LANES ? lane_load(dtype, x, at) : lane_load_part(dtype, x, at, n, fill);
}

LANE_INLINE void store_some(int32_t dtype, void *x, int64_t at, int64_t n, lane_f32 value) {
  if (n >= LANES)
    lane_store(dtype, x, at, value);
  else
    lane_store_part(dtype, x, at, n, value);
}

LANE_INLINE lane_f32 first_lanes(int64_t n, lane_f32 x) {
  return n >= LANES ? x : (lane_f32)((LANE_NUMBERS < (int32_t)n) & (lane_i32)x);
}

LANE_INLINE float largest_of(int32_t dtype, const void *x, int64_t n) {
  lane_f32 largest = lane_all(-INFINITY);
  for (int64_t at = 0; at < n; at += LANES) {
    lane_f32 value = load_some(dtype, x, at, n - at, -INFINITY);
    largest = lane_pick((value > largest) | (value != value), value, largest);
  }
  return lane_largest(largest);
}

/* Keeps the exponentials in y where that is f32. */
LANE_INLINE double exps_of(int32_t dtype, const void *x, float *y, int64_t n, float largest) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    lane_f32 part = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += LANES) {
      lane_f32 e = lane_exp(load_some(dtype, x, at, n - at, -INFINITY) - largest);
      if (y != NULL) store_some(TN_F32, y, at, n - at, e);
      part += first_lanes(n - at, e);
    }
    sum += (double)lane_sum(part);
  }
  return sum;
}

LANE_INLINE double sum_of(int32_t dtype, const void *x, int64_t n) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    lane_f32 part = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += LANES) part += load_some(dtype, x, at, n - at, 0);
    sum += (double)lane_sum(part);
  }
  return sum;
}

LANE_INLINE tn_softmax_sums sums(int32_t dtype, const void *x, int64_t n, int64_t pick, bool all) {
  tn_softmax_sums s = {.largest = largest_of(dtype, x, n)};
  s.exps = exps_of(dtype, x, NULL, n, s.largest);
  s.picked = lane_load_part(dtype, x, pick, 1, 0)[0];
  if (all) s.sum = sum_of(dtype, x, n);
  return s;
}

LANE_INLINE void softmax(int32_t dtype, const void *x, void *y, int64_t n) {
  float largest = largest_of(dtype, x, n);
  bool kept = dtype == TN_F32;
  lane_f32 sum = lane_all((float)exps_of(dtype, x, kept ? y : NULL, n, largest));
  for (int64_t at = 0; at < n; at += LANES) {
    lane_f32 e = kept ? load_some(TN_F32, y, at, n - at, 0)
                      : lane_exp(load_some(dtype, x, at, n - at, -INFINITY) - largest);
    store_some(dtype, y, at, n - at, e / sum);
  }
}

LANE_INLINE void log_softmax(int32_t dtype, const void *x, void *y, int64_t n) {
  float largest = largest_of(dtype, x, n), log_sum = (float)log(exps_of(dtype, x, NULL, n, largest));
  for (int64_t at = 0; at < n; at += LANES)
    store_some(dtype, y, at, n - at, (load_some(dtype, x, at, n - at, 0) - largest) - log_sum);
}

#define SOFTMAX(dtype)                                                                                       \
  static tn_softmax_sums TN_LOOP(sums_##dtype)(const void *x, int64_t n, int64_t pick, int32_t all) {        \
    return sums(dtype, x, n, pick, all);                                                                     \
  }                                                                                                          \
  static void TN_LOOP(softmax_##dtype)(const void *x, void *y, int64_t n) { softmax(dtype, x, y, n); }       \
  static void TN_LOOP(log_softmax_##dtype)(const void *x, void *y, int64_t n) { log_softmax(dtype, x, y, n); }
SOFTMAX(TN_F32)
SOFTMAX(TN_BF16)
SOFTMAX(TN_F16)

#define EACH(name)                                                                                           \
  {                                                                                                          \
    [TN_F32] = TN_LOOP(name##_TN_F32), [TN_BF16] = TN_LOOP(name##_TN_BF16),                                  \
    [TN_F16] = TN_LOOP(name##_TN_F16)                                                                        \
  }
const tn_softmax_loops TN_LOOP(tn_loops_softmax) = {EACH(sums), EACH(softmax), EACH(log_softmax)};
