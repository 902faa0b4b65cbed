/* backends/cuda/device/conv_moments.cu: mean and variance of each channel behind a convolution. */
#include "backends/cuda/device/conv_moments_kernels.cuh"

extern "C" __global__ void __launch_bounds__(128) conv_moments(const conv_moments_args a) {
  channel_moments(a, no_epilogue());
}
