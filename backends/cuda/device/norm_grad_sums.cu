/* backends/cuda/device/norm_grad_sums.cu: sums of dy, and of dy (x - mean) rstd, over any axes. */
#include "backends/cuda/device/reduce_kernels.cuh"

template <typename T, typename A>
static __device__ inline void store(T *, const reduce_args &a, i64 result, A, const grads_of<A> &c) {
  ((A *)a.out[0])[result] = c.sum;
  ((A *)a.out[1])[result] = c.dot * ((const A *)a.rstd)[result];
}

REDUCE_FLOATS(norm_grad_sums, grads_of)
