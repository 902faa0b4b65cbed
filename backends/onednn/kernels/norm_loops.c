/* backends/onednn/kernels/norm_loops.c: see norm.h. */
#define V_LEAST_LANES 8
#include "backends/onednn/kernels/norm.h"
#include "backends/onednn/simd/vector_load.h"

#include <math.h>
#include <stdbool.h>

enum { TERMS = 64 /* of a sum in f32 */, STRETCH = TERMS * V_LANES /* elements */ };

V_INLINE vf norm_load(int32_t dtype, const void *x, int64_t at, int64_t n) {
  return v_load_upto_as(dtype, x, at, n, 0);
}

/* The sum of x, or of (x - mean)^2. */
V_INLINE double norm_sum(int32_t dtype, bool squares, const void *x, int64_t n, float mean) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    vf part = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += V_LANES) {
      vf value = norm_load(dtype, x, at, n - at);
      if (squares) value = v_keep_first(value - mean, n - at, (vf){0});
      part += squares ? value * value : value;
    }
    sum += (double)v_sum_across(part)[0];
  }
  return sum;
}

/* x, rounded before it becomes part of a sum. Of the instruction sets that can fuse a product with a sum,
 * AVX2 rounds twice here and AVX-512 once. */
V_INLINE vf norm_rounded(vf x) {
#if defined(__FMA__) && !defined(__AVX512F__)
  __asm__("" : "+x"(x));
#endif
  return x;
}

V_INLINE void norm_forward(int32_t dtype, const void *x, const float *weight, const float *bias, void *y,
                           int64_t n, double epsilon, float *mean, float *rstd) {
  *mean = (float)(norm_sum(dtype, false, x, n, 0) / (double)n);
  *rstd = (float)(1 / sqrt(norm_sum(dtype, true, x, n, *mean) / (double)n + epsilon));
  for (int64_t at = 0; at < n; at += V_LANES) {
    vf value = (norm_load(dtype, x, at, n - at) - *mean) * *rstd;
    if (weight != NULL) value *= norm_load(TN_F32, weight, at, n - at);
    if (bias != NULL) value = norm_rounded(value) + norm_load(TN_F32, bias, at, n - at);
    v_store_upto_as(dtype, y, at, n - at, value);
  }
}

/* dx = rstd (g - mean(g) - normal mean(g normal)) with g = dy weight and normal = (x - mean) rstd. */
V_INLINE void norm_grad(int32_t dtype, const void *dy, const void *x, const float *weight, float mean,
                        float rstd, const void *more, void *dx, int64_t n, float *dweight, float *dbias) {
  double sum = 0, dot = 0;
  for (int64_t from = 0; from < n; from += STRETCH) {
    vf sums = {0}, dots = {0};
    int64_t end = n - from < STRETCH ? n : from + STRETCH;
    for (int64_t at = from; at < end; at += V_LANES) {
      int64_t left = n - at;
      vf d = norm_load(dtype, dy, at, left), normal = (norm_load(dtype, x, at, left) - mean) * rstd;
      vf g = weight != NULL ? d * norm_load(TN_F32, weight, at, left) : d;
      v_store_upto(dweight + at, norm_load(TN_F32, dweight, at, left) + d * normal, left);
      v_store_upto(dbias + at, norm_load(TN_F32, dbias, at, left) + d, left);
      sums += g;
      dots += g * normal;
    }
    sum += (double)v_sum_across(sums)[0];
    dot += (double)v_sum_across(dots)[0];
  }
  float average = (float)(sum / (double)n), along = (float)(dot / (double)n);
  for (int64_t at = 0; at < n; at += V_LANES) {
    int64_t left = n - at;
    vf g = norm_load(dtype, dy, at, left), normal = (norm_load(dtype, x, at, left) - mean) * rstd;
    if (weight != NULL) g *= norm_load(TN_F32, weight, at, left);
    vf value = (g - average - normal * along) * rstd;
    if (more != NULL) value += norm_load(dtype, more, at, left);
    v_store_upto_as(dtype, dx, at, left, value);
  }
}

static void norm_collect(float *x, double *sums, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    sums[i] += (double)x[i];
    x[i] = 0;
  }
}

#define NORM_LOOPS(dtype)                                                                                    \
  static void norm_forward_##dtype(const void *x, const float *weight, const float *bias, void *y,           \
                                   int64_t n, double epsilon, float *mean, float *rstd) {                    \
    norm_forward(dtype, x, weight, bias, y, n, epsilon, mean, rstd);                                         \
  }                                                                                                          \
  static void norm_grad_##dtype(const void *dy, const void *x, const float *weight, float mean, float rstd,  \
                                const void *more, void *dx, int64_t n, float *dweight, float *dbias) {       \
    norm_grad(dtype, dy, x, weight, mean, rstd, more, dx, n, dweight, dbias);                                \
  }
NORM_LOOPS(TN_F32)
NORM_LOOPS(TN_BF16)
NORM_LOOPS(TN_F16)

const tn_norm_loops TN_LOOP(tn_loops_norm) = {
    .forward =
        {[TN_F32] = norm_forward_TN_F32, [TN_BF16] = norm_forward_TN_BF16, [TN_F16] = norm_forward_TN_F16},
    .gradient = {[TN_F32] = norm_grad_TN_F32, [TN_BF16] = norm_grad_TN_BF16, [TN_F16] = norm_grad_TN_F16},
    .collect = norm_collect,
};
