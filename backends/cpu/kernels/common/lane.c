#include "backends/cpu/kernels/common/lane.h"

#include "backends/cpu/kernels/common/clones.h"
#include "backends/shared/half.h"

#define LANE_CONVERT(name, FROM, TO, value)                                                                  \
  static TN_CPU_CLONES void name(const FROM *x, TO *y, int64_t n) {                                          \
    TN_CPU_VECTOR for (int64_t k = 0; k < n; k++) y[k] = value;                                              \
  }
LANE_CONVERT(f32_of_f16, uint16_t, float, tn_f32_of_f16(x[k]))
LANE_CONVERT(f32_of_bf16, uint16_t, float, tn_f32_of_bf16(x[k]))
LANE_CONVERT(f16_of_f32, float, uint16_t, tn_f16_of_f32(x[k]))
LANE_CONVERT(bf16_of_f32, float, uint16_t, tn_bf16_of_f32(x[k]))
LANE_CONVERT(round_f16, float, float, tn_f32_of_f16(tn_f16_of_f32(x[k])))
LANE_CONVERT(round_bf16, float, float, tn_f32_of_bf16(tn_bf16_of_f32(x[k])))
LANE_CONVERT(f64_of_f16, uint16_t, double, (double)tn_f32_of_f16(x[k]))
LANE_CONVERT(f64_of_bf16, uint16_t, double, (double)tn_f32_of_bf16(x[k]))
LANE_CONVERT(f64_of_f32, float, double, (double)x[k])
LANE_CONVERT(f64_of_i32, int32_t, double, (double)x[k])
LANE_CONVERT(f64_of_u8, uint8_t, double, (double)x[k])
LANE_CONVERT(f64_of_i8, int8_t, double, (double)x[k])
LANE_CONVERT(i64_of_i32, int32_t, int64_t, x[k])
LANE_CONVERT(i64_of_u8, uint8_t, int64_t, x[k])
LANE_CONVERT(i64_of_i8, int8_t, int64_t, x[k])

void tn_cpu_widen(int32_t dtype, const void *from, float *to, int64_t n) {
  (dtype == TN_F16 ? f32_of_f16 : f32_of_bf16)(from, to, n);
}

void tn_cpu_narrow(int32_t dtype, const float *from, void *to, int64_t n) {
  (dtype == TN_F16 ? f16_of_f32 : bf16_of_f32)(from, to, n);
}

void tn_cpu_round(int32_t dtype, const float *from, float *to, int64_t n) {
  (dtype == TN_F16 ? round_f16 : round_bf16)(from, to, n);
}

const float *tn_cpu_f32(int32_t dtype, const void *from, int64_t at, int64_t n, float *tile) {
  const void *x = tn_cpu_at(from, dtype, at);
  if (dtype == TN_F32) return x;
  tn_cpu_widen(dtype, x, tile, n);
  return tile;
}

const double *tn_cpu_f64(int32_t dtype, const void *from, int64_t at, int64_t n, double *tile) {
  const void *x = tn_cpu_at(from, dtype, at);
  switch (dtype) {
  case TN_F64: return x;
  case TN_F32: f64_of_f32(x, tile, n); break;
  case TN_F16: f64_of_f16(x, tile, n); break;
  case TN_BF16: f64_of_bf16(x, tile, n); break;
  case TN_I32: f64_of_i32(x, tile, n); break;
  case TN_I8: f64_of_i8(x, tile, n); break;
  default: f64_of_u8(x, tile, n); break;
  }
  return tile;
}

const int64_t *tn_cpu_i64(int32_t dtype, const void *from, int64_t at, int64_t n, int64_t *tile) {
  const void *x = tn_cpu_at(from, dtype, at);
  switch (dtype) {
  case TN_I64: return x;
  case TN_I32: i64_of_i32(x, tile, n); break;
  case TN_I8: i64_of_i8(x, tile, n); break;
  default: i64_of_u8(x, tile, n); break;
  }
  return tile;
}

double tn_cpu_get(int32_t dtype, const void *from, int64_t at) {
  double tile;
  if (dtype == TN_I64) return (double)((const int64_t *)from)[at];
  return *tn_cpu_f64(dtype, from, at, 1, &tile);
}

void tn_cpu_put(int32_t dtype, void *to, int64_t at, double value) {
  float narrow = (float)value;
  switch (dtype) {
  case TN_F64: ((double *)to)[at] = value; break;
  case TN_F32: ((float *)to)[at] = narrow; break;
  default: tn_cpu_narrow(dtype, &narrow, tn_cpu_at(to, dtype, at), 1); break;
  }
}
