/* backends/cuda/device/divide.cuh: division of indices by numbers that are known before the launch, for host and
 * device (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994). */
#ifndef TN_CUDA_DIVIDE_CUH
#define TN_CUDA_DIVIDE_CUH

/* kernels/index.h fills it. Indices of 32 bits are below 2^31, those of 64 bits below 2^63. Without hardware for the
 * division of 64 bits, `/` would be a call of a function, around which registers are spilled. */
struct divider {
  long long divisor;
  unsigned multiplier, shift;
  unsigned long long long_multiplier;
  unsigned long_shift, pad;
};

#ifdef TN_CUDA_PRELUDE_CUH /* device code includes prelude.cuh first */
static __device__ inline u32 divide(u32 n, const divider &d) {
  return (u32)(((u64)n * d.multiplier >> 32) + n) >> d.shift;
}
static __device__ inline i64 divide(i64 n, const divider &d) {
  return d.divisor == 1 ? n : (i64)(__umul64hi((u64)n, d.long_multiplier) >> d.long_shift);
}

/* `n` becomes the quotient; the result is the remainder. */
static __device__ inline u32 split(u32 *n, const divider &d) {
  u32 quotient = divide(*n, d), rest = *n - quotient * (u32)d.divisor;
  *n = quotient;
  return rest;
}
static __device__ inline i64 split(i64 *n, const divider &d) {
  i64 quotient = divide(*n, d), rest = *n - quotient * d.divisor;
  *n = quotient;
  return rest;
}
#endif

#endif
