/* backends/cuda/device/prologue.cuh: what a kernel with a prologue calls for operands that a region in front of it makes.
 * A printed prologue (backends/cuda/pointwise/printed.h) is a namespace with the type `words`, its part of the kernel's
 * argument, and two functions for positions at .. at + n - 1, at most words::WIDTH; `whole`: as many, and aligned.
 *
 *     void fetch(const words &f, i64 at, i32 n, bool whole, fetched *to)
 *     void compute(const words &f, const fetched &from, i64 at, i32 n, bool whole, bool stores, T *x, T *y)
 *
 * `fetch` loads the region's operands that have its dims, words::BYTES in all; `compute` loads the others, at most
 * words::HELD bytes. `compute` makes x, or y, or both, as words::TAKES says, and writes results of the region that the
 * kernel stores where `stores` is set. All loads of a position come before its stores, which may overwrite the operands
 * there. */
#ifndef TN_CUDA_PROLOGUE_CUH
#define TN_CUDA_PROLOGUE_CUH

#include "backends/cuda/device/prelude.cuh"

struct nothing_fetched {};
struct no_prologue {
  typedef nothing_fetched fetched;
  enum { WIDTH = 16, TAKES = 0, BYTES = 0, HELD = 0 };
};
static __device__ inline void fetch(const no_prologue &, i64, i32, bool, nothing_fetched *) {}
template <typename T>
static __device__ inline void compute(const no_prologue &, const nothing_fetched &, i64, i32, bool, bool, T *, T *) {}

/* Element `at` of an operand at `from`, or of what the prologue makes in its place. */
template <typename T, typename F> static __device__ inline T element_of(const F &f, const void *from, i64 at) {
  if (!(F::TAKES & 1)) return ((const T *)from)[at];
  typename F::fetched loads;
  T x[F::WIDTH], y[F::WIDTH];
  fetch(f, at, 1, F::WIDTH == 1, &loads);
  compute(f, loads, at, 1, F::WIDTH == 1, false, x, y);
  return x[0];
}

#endif
