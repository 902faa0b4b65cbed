/* backends/cpu/kernels/common/lane.h: conversion between element types and the lanes in which kernels
 * compute. */
#pragma once

#include "backends/shared/lane.h"
#include "tenon/plugin/kernel.h"

/* f16 or bf16 to f32 and back, rounded to nearest even. tn_cpu_round rounds f32 values to the dtype's values;
 * `from` and `to` may be the same. */
void tn_cpu_widen(int32_t dtype, const void *from, float *to, int64_t n);
void tn_cpu_narrow(int32_t dtype, const float *from, void *to, int64_t n);
void tn_cpu_round(int32_t dtype, const float *from, float *to, int64_t n);

/* The elements that kernels convert at once. A few tiles fit into the first-level cache. */
enum { TN_TILE = 512 };

/* The n <= TN_TILE elements from element `at` of `from` as lanes: a pointer into `from` if they need no
 * conversion, else `tile`. The conversions are exact. tn_cpu_f32 accepts f16, bf16 and f32; tn_cpu_f64 every
 * type but i64; tn_cpu_i64 every integer type. */
const float *tn_cpu_f32(int32_t dtype, const void *from, int64_t at, int64_t n, float *tile);
const double *tn_cpu_f64(int32_t dtype, const void *from, int64_t at, int64_t n, double *tile);
const int64_t *tn_cpu_i64(int32_t dtype, const void *from, int64_t at, int64_t n, int64_t *tile);

/* Reads one element as f64, and stores one f64, rounded. For code outside of inner loops. */
double tn_cpu_get(int32_t dtype, const void *from, int64_t at);
void tn_cpu_put(int32_t dtype, void *to, int64_t at, double value);

/* The address of element `at`. */
static inline void *tn_cpu_at(const void *base, int32_t dtype, int64_t at) {
  return (uint8_t *)(uintptr_t)base + (size_t)at * tn_dtype_size(dtype);
}
