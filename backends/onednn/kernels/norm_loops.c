#include "backends/onednn/simd/lanes.h"
#include "backends/onednn/kernels/norm.h"

#include <math.h>
#include <stdbool.h>

enum { TERMS = 64 /* of a sum in f32 */, STRETCH = TERMS * LANES /* elements */ };

LANE_INLINE lane_f32 load_some(int32_t dtype, const void *x, int64_t at, int64_t n) {
  return n >= LANES ? lane_load(dtype, x, at) : lane_load_part(dtype, x, at, n, 0);
}

LANE_INLINE void store_some(int32_t dtype, void *x, int64_t at, int64_t n, lane_f32 value) {
  if (n >= LANES)
    lane_store(dtype, x, at, value);
  else
    lane_store_part(dtype, x, at, n, value);
}

/* The last vector of a row may have fewer lanes: the others are 0. */
LANE_INLINE lane_f32 first_lanes(int64_t n, lane_f32 x) {
  return n >= LANES ? x : (lane_f32)((LANE_NUMBERS < (int32_t)n) & (lane_i32)x);
}

/* Sums of x - mean, or of its squares. */
LANE_INLINE double sum_of(int32_t dtype, bool squares, const void *x, int64_t n, float mean) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    lane_f32 part = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += LANES) {
      lane_f32 value = load_some(dtype, x, at, n - at);
      if (squares) value = first_lanes(n - at, value - mean);
      part += squares ? value * value : value;
    }
    sum += (double)lane_sum(part);
  }
  return sum;
}

LANE_INLINE void forward(int32_t dtype, const void *x, const float *weight, const float *bias, void *y,
                         int64_t n, double epsilon, float *mean, float *rstd) {
  *mean = (float)(sum_of(dtype, false, x, n, 0) / (double)n);
  *rstd = (float)(1 / sqrt(sum_of(dtype, true, x, n, *mean) / (double)n + epsilon));
  for (int64_t at = 0; at < n; at += LANES) {
    lane_f32 value = (load_some(dtype, x, at, n - at) - *mean) * *rstd;
    if (weight != NULL) value *= load_some(TN_F32, weight, at, n - at);
    if (bias != NULL) value += load_some(TN_F32, bias, at, n - at);
    store_some(dtype, y, at, n - at, value);
  }
}

/* dx = rstd (g - mean(g) - normal mean(g normal)) with g = dy weight and normal = (x - mean) rstd. */
LANE_INLINE void gradient(int32_t dtype, const void *dy, const void *x, const float *weight, float mean,
                          float rstd, const void *more, void *dx, int64_t n, float *dweight, float *dbias) {
  double sum = 0, dot = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    lane_f32 sums = {0}, dots = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += LANES) {
      int64_t left = n - at;
      lane_f32 d = load_some(dtype, dy, at, left), normal = (load_some(dtype, x, at, left) - mean) * rstd;
      lane_f32 g = weight != NULL ? d * load_some(TN_F32, weight, at, left) : d;
      store_some(TN_F32, dweight, at, left, load_some(TN_F32, dweight, at, left) + d * normal);
      store_some(TN_F32, dbias, at, left, load_some(TN_F32, dbias, at, left) + d);
      sums += g;
      dots += g * normal;
    }
    sum += (double)lane_sum(sums);
    dot += (double)lane_sum(dots);
  }
  float average = (float)(sum / (double)n), along = (float)(dot / (double)n);
  for (int64_t at = 0; at < n; at += LANES) {
    int64_t left = n - at;
    lane_f32 g = load_some(dtype, dy, at, left), normal = (load_some(dtype, x, at, left) - mean) * rstd;
    if (weight != NULL) g *= load_some(TN_F32, weight, at, left);
    lane_f32 value = (g - average - normal * along) * rstd;
    if (more != NULL) value += load_some(dtype, more, at, left);
    store_some(dtype, dx, at, left, value);
  }
}

static void TN_LOOP(collect)(float *x, double *sums, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    sums[i] += (double)x[i];
    x[i] = 0;
  }
}

#define NORM(dtype)                                                                                          \
  static void TN_LOOP(forward_##dtype)(const void *x, const float *weight, const float *bias, void *y,       \
                                       int64_t n, double epsilon, float *mean, float *rstd) {                \
    forward(dtype, x, weight, bias, y, n, epsilon, mean, rstd);                                              \
  }                                                                                                          \
  static void TN_LOOP(gradient_##dtype)(const void *dy, const void *x, const float *weight, float mean,      \
                                        float rstd, const void *more, void *dx, int64_t n, float *dweight,   \
                                        float *dbias) {                                                      \
    gradient(dtype, dy, x, weight, mean, rstd, more, dx, n, dweight, dbias);                                 \
  }
NORM(TN_F32)
NORM(TN_BF16)
NORM(TN_F16)

const tn_norm_loops TN_LOOP(tn_loops_norm) = {
    .forward = {[TN_F32] = TN_LOOP(forward_TN_F32),
                [TN_BF16] = TN_LOOP(forward_TN_BF16),
                [TN_F16] = TN_LOOP(forward_TN_F16)},
    .gradient = {[TN_F32] = TN_LOOP(gradient_TN_F32),
                 [TN_BF16] = TN_LOOP(gradient_TN_BF16),
                 [TN_F16] = TN_LOOP(gradient_TN_F16)},
    .collect = TN_LOOP(collect),
};
