/* backends/shared/lane.h: lanes, the types in which kernels compute. The lane of f16, bf16 and f32 is f32,
 * that of bool and u8 is u8; every other element type is its own lane. */
#pragma once

#include <stddef.h>

#include "tenon/base.h"

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

/* Whether the element type is its own lane, so that no conversion is needed. */
static inline int32_t tn_lane_is_stored(int32_t dtype) { return dtype != TN_F16 && dtype != TN_BF16; }
