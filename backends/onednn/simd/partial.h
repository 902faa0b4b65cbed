/* backends/onednn/simd/partial.h: vectors of which only the first lanes exist in memory. */
#ifndef TN_BACKENDS_ONEDNN_SIMD_PARTIAL_H
#define TN_BACKENDS_ONEDNN_SIMD_PARTIAL_H

#include "backends/onednn/simd/vector.h"

#define V_INLINE static inline __attribute__((always_inline))

/* The first n lanes, 0 < n <= V_LANES; the others are zero, and their memory is not touched. */
#if defined(__AVX512F__)
V_INLINE vf v_get_some(const float *from, int64_t n) {
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}
V_INLINE void v_put_some(float *to, vf x, int64_t n) {
  _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)x);
}
#elif defined(__AVX2__)
V_INLINE __m256i v_first(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
V_INLINE vf v_get_some(const float *from, int64_t n) { return (vf)_mm256_maskload_ps(from, v_first(n)); }
V_INLINE void v_put_some(float *to, vf x, int64_t n) { _mm256_maskstore_ps(to, v_first(n), (__m256)x); }
#else
V_INLINE vf v_get_some(const float *from, int64_t n) {
  vf x = {0};
  for (int64_t l = 0; l < n; l++) x[l] = from[l];
  return x;
}
V_INLINE void v_put_some(float *to, vf x, int64_t n) {
  for (int64_t l = 0; l < n; l++) to[l] = x[l];
}
#endif

/* The same, quick where there are more lanes than one vector has. */
V_INLINE vf v_get_most(const float *from, int64_t n) {
  return n >= V_LANES ? v_get(from) : v_get_some(from, n);
}
V_INLINE void v_put_most(float *to, vf x, int64_t n) {
  if (n >= V_LANES)
    v_put(to, x);
  else
    v_put_some(to, x, n);
}

/* The sum of all lanes. */
V_INLINE float v_sum(vf x) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)x);
#else
  float sum = 0;
  for (int l = 0; l < V_LANES; l++) sum += x[l];
  return sum;
#endif
}

#endif
