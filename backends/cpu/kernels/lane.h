/* backends/cpu/kernels/lane.h: the types in which kernels compute, and the way there and back.
 * Element types are many; lanes are few: f16, bf16 and f32 are computed in f32, bool and u8 in bytes,
 * the others in themselves. */
#ifndef TN_BACKENDS_CPU_KERNELS_LANE_H
#define TN_BACKENDS_CPU_KERNELS_LANE_H

#include "tenon/plugin/kernel.h"

enum { TN_LANE_U8 = 0, TN_LANE_I32 = 1, TN_LANE_I64 = 2, TN_LANE_F32 = 3, TN_LANE_F64 = 4, TN_LANES = 5 };

static inline int32_t tn_lane_of(int32_t dtype) {
  switch (dtype) {
  case TN_F64: return TN_LANE_F64;
  case TN_I64: return TN_LANE_I64;
  case TN_I32: return TN_LANE_I32;
  case TN_BOOL:
  case TN_U8: return TN_LANE_U8;
  default: return TN_LANE_F32;
  }
}

static inline size_t tn_lane_size(int32_t lane) {
  static const uint8_t size[TN_LANES] = {1, 4, 8, 4, 8};
  return size[lane];
}

/* Whether elements in memory are lanes as they are. */
static inline int32_t tn_lane_is_stored(int32_t dtype) { return dtype != TN_F16 && dtype != TN_BF16; }

/* f16 or bf16 to f32 and back, rounded to nearest even. tn_cpu_round rounds f32 values in place of
 * themselves or elsewhere. */
void tn_cpu_widen(int32_t dtype, const void *from, float *to, int64_t n);
void tn_cpu_narrow(int32_t dtype, const float *from, void *to, int64_t n);
void tn_cpu_round(int32_t dtype, const float *from, float *to, int64_t n);

/* How many elements kernels look at in one go: small enough that a few tiles stay in the first cache. */
enum { TN_TILE = 512 };

/* The n <= TN_TILE elements at `from` + `at` as lanes: where they lie, or converted into `tile`.
 * tn_cpu_f64 accepts every type but i64, exactly; tn_cpu_i64 every whole one; tn_cpu_f32 f16, bf16 and f32.
 */
const float *tn_cpu_f32(int32_t dtype, const void *from, int64_t at, int64_t n, float *tile);
const double *tn_cpu_f64(int32_t dtype, const void *from, int64_t at, int64_t n, double *tile);
const int64_t *tn_cpu_i64(int32_t dtype, const void *from, int64_t at, int64_t n, int64_t *tile);

/* One element as f64, and one f64 stored, rounded. For code that is not hot. */
double tn_cpu_get(int32_t dtype, const void *from, int64_t at);
void tn_cpu_put(int32_t dtype, void *to, int64_t at, double value);

/* Where element `at` lies. */
static inline void *tn_cpu_at(const void *base, int32_t dtype, int64_t at) {
  return (uint8_t *)(uintptr_t)base + (size_t)at * tn_dtype_size(dtype);
}

#endif
