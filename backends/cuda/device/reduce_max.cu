/* backends/cuda/device/reduce_max.cu: largest elements over any axes; NaN where one is. */
#include "backends/cuda/device/reduce_kernels.cuh"

template <typename T, typename A>
static __device__ inline void store(T *, const reduce_args &a, i64 result, A, const largest_of<A> &c) {
  put((T *)a.out[0] + result, c.value);
}

REDUCE_NUMBERS(reduce_max, largest_of)
