/* backends/cuda/device/all_finite.cu: whether every element is finite: a flag for each block, then the flags of all
 * blocks. */
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/all_finite.cuh"

static __device__ void all_finite_deliver(const all_finite_args &a, bool bad) {
  int any = __syncthreads_or(bad);
  if (threadIdx.x == 0) a.flags[blockIdx.x] = any == 0;
}

template <typename T> static __device__ void all_finite(const all_finite_args &a) {
  enum { V = vector_of<T>::N };
  T exponent = (T)a.exponent;
  bool bad = false;
  i64 units = is_aligned(a.x) ? a.count / V : 0;
#pragma unroll 4
  for (i64 i = grid_first(); i < units; i += grid_step()) {
    pack_of<T, V> p = load_pack<T, V>(a.x, i * V);
#pragma unroll
    for (int j = 0; j < V; j++) bad |= (p.at[j] & exponent) == exponent;
  }
  for (i64 i = units * V + grid_first(); i < a.count; i += grid_step())
    bad |= (((const T *)a.x)[i] & exponent) == exponent;
  all_finite_deliver(a, bad);
}

#define ALL_FINITE(bytes, T)                                                                                             \
  extern "C" __global__ void __launch_bounds__(ALL_FINITE_THREADS) all_finite_##bytes(const all_finite_args a) {         \
    all_finite<T>(a);                                                                                                    \
  }
ALL_FINITE(2, u16)
ALL_FINITE(4, u32)
ALL_FINITE(8, u64)

/* x: the flags of the first launch. */
extern "C" __global__ void __launch_bounds__(ALL_FINITE_THREADS) all_finite_join(const all_finite_args a) {
  bool bad = false;
  for (i64 i = grid_first(); i < a.count; i += grid_step()) bad |= ((const u8 *)a.x)[i] == 0;
  all_finite_deliver(a, bad);
}
