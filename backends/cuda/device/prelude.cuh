/* backends/cuda/device/prelude.cuh: what every kernel may use: element types, half floats, indices of threads.
 *
 * Device code is CUDA C with overloads and templates over element types. It is compiled by NVRTC, by nvcc, and by a host
 * compiler for tests; no header of CUDA is included. __CUDA_ARCH__ is defined where the code runs on a GPU: inline PTX
 * has a portable path beside it. */
#ifndef TN_CUDA_PRELUDE_CUH
#define TN_CUDA_PRELUDE_CUH

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

/* Elements of f16 and bf16 in memory; numbers are computed as f32. */
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

/* ---- half floats: conversions round to nearest, ties to even ---- */

static __device__ inline f32 f32_of_bits(u32 bits) { return __uint_as_float(bits); }
static __device__ inline u32 bits_of_f32(f32 x) { return __float_as_uint(x); }

static __device__ inline f32 widen(bf16 x) { return f32_of_bits((u32)x.bits << 16); }

static __device__ inline bf16 bf16_of(f32 x) {
  u32 bits = bits_of_f32(x);
  bf16 y;
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    y.bits = (u16)(bits >> 16 | 0x40); /* NaN stays one */
  else
    y.bits = (u16)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
  return y;
}

static __device__ inline f32 widen(f16 x) {
#ifdef __CUDA_ARCH__
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  u32 sign = (u32)(x.bits & 0x8000) << 16, exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
  if (exponent == 31) return f32_of_bits(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0));
  if (exponent > 0) return f32_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
  f32 small = (f32)mantissa * 5.9604644775390625e-08f; /* 2^-24 */
  return f32_of_bits(sign | bits_of_f32(small));
#endif
}

static __device__ inline f16 f16_of(f32 x) {
  f16 y;
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  u32 bits = bits_of_f32(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) {
    y.bits = (u16)(sign | 0x7fff);
  } else if (size >= 0x477ff000u) { /* rounds to 65520 or more */
    y.bits = (u16)(sign | 0x7c00);
  } else if (size < 0x38800000u) { /* below 2^-14: a multiple of 2^-24, by adding 0.5 */
    y.bits = (u16)(sign | (bits_of_f32(f32_of_bits(size) + 0.5f) - 0x3f000000u));
  } else {
    y.bits = (u16)(sign | ((size + 0xc8000fffu + (size >> 13 & 1)) >> 13));
  }
#endif
  return y;
}

/* ---- from memory to the type of arithmetic, and back ---- */

static __device__ inline f32 widen(f32 x) { return x; }
static __device__ inline f64 widen(f64 x) { return x; }
static __device__ inline i32 widen(i32 x) { return x; }
static __device__ inline i64 widen(i64 x) { return x; }
static __device__ inline u8 widen(u8 x) { return x; }

static __device__ inline void narrow(f16 *to, f32 x) { *to = f16_of(x); }
static __device__ inline void narrow(bf16 *to, f32 x) { *to = bf16_of(x); }
static __device__ inline void narrow(f32 *to, f32 x) { *to = x; }
static __device__ inline void narrow(f64 *to, f64 x) { *to = x; }
static __device__ inline void narrow(i32 *to, i32 x) { *to = x; }
static __device__ inline void narrow(i64 *to, i64 x) { *to = x; }
static __device__ inline void narrow(u8 *to, u8 x) { *to = x; }

/* The first item of this thread and the distance to its next, for grids along x. */
static __device__ inline i64 grid_first() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ inline i64 grid_step() { return (i64)gridDim.x * blockDim.x; }

#endif
