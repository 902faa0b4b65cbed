/* backends/cpu/kernels/lane.h: conversion between element types and the lanes in which kernels compute. */
#ifndef TN_BACKENDS_CPU_KERNELS_LANE_H
#define TN_BACKENDS_CPU_KERNELS_LANE_H

#include "backends/shared/lane.h"
#include "tenon/plugin/kernel.h"

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
