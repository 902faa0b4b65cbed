/* backends/shared/lane.h: lanes, the types in which kernels compute. The lane of f16, bf16 and f32 is f32,
 * that of bool and u8 is u8; every other element type is its own lane. */
#pragma once

#include <stddef.h>

#include "tenon/base.h"

/* X(code, name, type, type without sign) for each lane: whole numbers, then floats. */
#define TN_WHOLE_LANES(X)                                                                                    \
  X(U8, u8, uint8_t, uint8_t)                                                                                \
  X(I8, i8, int8_t, uint8_t)                                                                                 \
  X(I32, i32, int32_t, uint32_t)                                                                             \
  X(I64, i64, int64_t, uint64_t)
#define TN_EACH_LANE(X)                                                                                      \
  TN_WHOLE_LANES(X)                                                                                          \
  X(F32, f32, float, )                                                                                       \
  X(F64, f64, double, )

#define TN_LANE_CODE(code, name, type, whole) TN_LANE_##code,
enum { TN_EACH_LANE(TN_LANE_CODE) TN_LANES };

static inline int32_t tn_lane_of(int32_t dtype) {
#define TN_LANE_OF(code, name, type, whole)                                                                  \
  case TN_##code: return TN_LANE_##code;
  switch (dtype) {
    TN_EACH_LANE(TN_LANE_OF)
  case TN_BOOL: return TN_LANE_U8;
  default: return TN_LANE_F32;
  }
#undef TN_LANE_OF
}

static inline size_t tn_lane_size(int32_t lane) {
#define TN_LANE_SIZE(code, name, type, whole) (uint8_t)sizeof(type),
  static const uint8_t size[TN_LANES] = {TN_EACH_LANE(TN_LANE_SIZE)};
#undef TN_LANE_SIZE
  return size[lane];
}

/* Whether the element type is its own lane, so that no conversion is needed. */
static inline int32_t tn_lane_is_stored(int32_t dtype) { return dtype != TN_F16 && dtype != TN_BF16; }
