/* backends/cuda/device/cumulative.cu: running sums, products and extremes along an axis. A block computes a row of
 * neighbours, CUMULATIVE_THREADS at a time, by doubled distances (Hillis and Steele, "Data parallel algorithms", 1986); a
 * thread computes a row of any other distance. */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/gather.cuh"

static __device__ inline f32 log_add(f32 x, f32 y) {
  f32 high = x > y ? x : y, low = x > y ? y : x;
  return x == y ? x + 0.693147180559945309f : high + log1pf(expf(low - high));
}
static __device__ inline f64 log_add(f64 x, f64 y) {
  f64 high = x > y ? x : y, low = x > y ? y : x;
  return x == y ? x + 0.693147180559945309 : high + log1p(exp(low - high));
}
static __device__ inline i32 log_add(i32 x, i32) { return x; }
static __device__ inline i64 log_add(i64 x, i64) { return x; }

/* Integers wrap. */
static __device__ inline f32 multiply(f32 x, f32 y) { return x * y; }
static __device__ inline f64 multiply(f64 x, f64 y) { return x * y; }
static __device__ inline i32 multiply(i32 x, i32 y) { return (i32)((u32)x * (u32)y); }
static __device__ inline i64 multiply(i64 x, i64 y) { return (i64)((u64)x * (u64)y); }

/* The modes of TN_CUMULATIVE_... */
template <typename A> static __device__ inline A join(int mode, A sum, A x) {
  if (mode == 0) return plus(sum, x);
  if (mode == 1) return multiply(sum, x);
  if (mode == 2) return larger(sum, x);
  if (mode == 3) return smaller(sum, x);
  return log_add(sum, x);
}

template <typename A> static __device__ inline A start_of(int mode) {
  A x = mode == 1;
  if (mode == 2 || mode == 4) set_lowest(&x);
  if (mode == 3) set_highest(&x);
  return x;
}

template <typename T> static __device__ void cumulative_apart(const cumulative_args &a) {
  typedef decltype(widen(T())) A;
  for (i64 row = grid_first(); row < a.rows; row += grid_step()) {
    i64 outer = row / a.inner, base = outer * a.n * a.inner + (row - outer * a.inner);
    A sum = start_of<A>(a.mode);
    for (i64 k = 0; k < a.n; k++) {
      i64 at = base + (a.reverse ? a.n - 1 - k : k) * a.inner;
      A before = sum;
      sum = join(a.mode, sum, widen(((const T *)a.x)[at]));
      narrow((T *)a.y + at, a.exclusive ? before : sum);
    }
  }
}

/* The sum over this thread's element and those of the threads before it. */
template <typename A> static __device__ inline A scan_block(int mode, A x, A *shared) {
  int t = (int)threadIdx.x;
  shared[t] = x;
  for (int apart = 1; apart < CUMULATIVE_THREADS; apart *= 2) {
    __syncthreads();
    A before = t >= apart ? shared[t - apart] : x;
    __syncthreads();
    if (t >= apart) shared[t] = join(mode, before, shared[t]);
  }
  __syncthreads();
  return shared[t];
}

template <typename T> static __device__ void cumulative_rows(const cumulative_args &a) {
  typedef decltype(widen(T())) A;
  __shared__ A shared[CUMULATIVE_THREADS];
  int t = (int)threadIdx.x;
  for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
    A carry = start_of<A>(a.mode);
    for (i64 first = 0; first < a.n; first += CUMULATIVE_THREADS) {
      i64 k = first + t, at = row * a.n + (a.reverse ? a.n - 1 - k : k);
      A x = k < a.n ? (A)widen(((const T *)a.x)[at]) : start_of<A>(a.mode);
      A sum = join(a.mode, carry, scan_block(a.mode, x, shared));
      A before = t == 0 ? carry : join(a.mode, carry, shared[t - (t > 0)]);
      if (k < a.n) narrow((T *)a.y + at, a.exclusive ? before : sum);
      carry = join(a.mode, carry, shared[CUMULATIVE_THREADS - 1]);
      __syncthreads();
    }
  }
}

#define CUMULATIVE(T) \
  extern "C" __global__ void __launch_bounds__(CUMULATIVE_THREADS, 1) cumulative_rows_##T(const cumulative_args a) { \
    cumulative_rows<T>(a); \
  } \
  extern "C" __global__ void __launch_bounds__(CUMULATIVE_THREADS, 1) cumulative_apart_##T(const cumulative_args a) { \
    cumulative_apart<T>(a); \
  }
CUMULATIVE(f16)
CUMULATIVE(bf16)
CUMULATIVE(f32)
CUMULATIVE(f64)
CUMULATIVE(i32)
CUMULATIVE(i64)
