/* backends/cuda/device/moments.cu: means and biased variances over any axes; NaN over nothing. All elements come less the
 * result's first, so that the variance keeps its digits where the mean is far from 0. */
#include "backends/cuda/device/reduce_kernels.cuh"

template <typename T, typename A>
static __device__ inline void store(T *, const reduce_args &a, i64 result, A center, const moments_of<A> &c) {
  A mean = center + c.mean, variance = c.squares / (A)a.count;
  if (a.count == 0) {
    set_nan(&mean);
    set_nan(&variance);
  }
  ((A *)a.out[0])[result] = mean;
  ((A *)a.out[1])[result] = variance;
}

REDUCE_FLOATS(moments, moments_run)
