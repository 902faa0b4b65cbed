/* backends/cuda/device/argmax.cu: the index of the largest element along an axis, as i32. */
#include "backends/cuda/device/reduce_kernels.cuh"

template <typename T, typename A>
static __device__ inline void store(T *, const reduce_args &a, i64 result, A, const argmax_of<A> &c) {
  ((i32 *)a.out[0])[result] = (i32)c.at;
}

REDUCE_NUMBERS(argmax, argmax_of)
