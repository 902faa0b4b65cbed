/* backends/cpu/kernels/common/vmath.h: the elementary functions (backends/shared/elementary.h) of one number,
 * so that the compiler vectorizes loops over them. They must be compiled without contraction to fused
 * multiply-adds, so that every instruction set gives the same bits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/shared/elementary.h"
#include "backends/shared/half.h"

static inline uint32_t vm_bits(float x) { return tn_bits_of_f32(x); }
static inline float vm_float(uint32_t u) { return tn_f32_of_bits(u); }
static inline float vm_of_int(int32_t x) { return (float)x; }
static inline float vm_splat(float x) { return x; }
static inline float vm_abs(float x) { return vm_float(vm_bits(x) & 0x7fffffffu); }
static inline float vm_neg(float x) { return -x; }
static inline float vm_copysign(float x, float y) {
  return vm_float((vm_bits(x) & 0x7fffffffu) | (vm_bits(y) & 0x80000000u));
}
static inline float vm_clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
static inline bool vm_eq(float x, float y) { return x == y; }
static inline bool vm_ne(float x, float y) { return x != y; }
static inline bool vm_lt(float x, float y) { return x < y; }
static inline bool vm_ge(float x, float y) { return x >= y; }
static inline float vm_select(bool m, float x, float y) { return m ? x : y; }

TN_DEFINE_ELEMENTARY(float, uint32_t, int32_t, bool, vm)
