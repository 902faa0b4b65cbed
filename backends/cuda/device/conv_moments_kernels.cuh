/* backends/cuda/device/conv_moments_kernels.cuh: the statistics behind a convolution that has summed its results. The
 * difference is taken in f64, so that it loses no more digits than the sums have lost. Statistics that only the
 * epilogue reads have no memory. */
#ifndef TN_CUDA_CONV_MOMENTS_KERNELS_CUH
#define TN_CUDA_CONV_MOMENTS_KERNELS_CUH

#include "backends/cuda/device/conv_moments.cuh"
#include "backends/cuda/device/epilogue.cuh"

template <typename E> static __device__ void channel_moments(const conv_moments_args &a, const E &e) {
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.channels) return;
  f64 mean = (f64)a.sum[i] / a.count, variance = (f64)a.squares[i] / a.count - mean * mean;
  f32 m = (f32)mean, v = variance < 0 ? 0.0f : (f32)variance;
  if (a.mean) a.mean[i] = m;
  if (a.variance) a.variance[i] = v;
  after(e, i, m, v);
}

/* With a printed epilogue, whose words are behind the arguments. */
#define CONV_MOMENTS_WITH_EPILOGUE                                                                                       \
  struct joined_args {                                                                                                   \
    conv_moments_args moments;                                                                                           \
    words epilogue;                                                                                                      \
  };                                                                                                                     \
  extern "C" __global__ void __launch_bounds__(128) joined(const joined_args a) { channel_moments(a.moments, a.epilogue); }

#endif
