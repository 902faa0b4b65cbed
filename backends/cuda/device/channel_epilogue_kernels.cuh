/* backends/cuda/device/channel_epilogue_kernels.cuh: gives both sums of each channel to a printed epilogue, whose words
 * are behind the arguments. */
#ifndef TN_CUDA_CHANNEL_EPILOGUE_KERNELS_CUH
#define TN_CUDA_CHANNEL_EPILOGUE_KERNELS_CUH

#include "backends/cuda/device/channel_epilogue.cuh"
#include "backends/cuda/device/epilogue.cuh"

#define CHANNEL_EPILOGUE                                                                 \
  struct joined_args {                                                                   \
    channel_epilogue_args sums;                                                          \
    words epilogue;                                                                      \
  };                                                                                     \
  extern "C" __global__ void __launch_bounds__(128) joined(const joined_args a) {        \
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;                                  \
    if (i < a.sums.channels) after(a.epilogue, i, a.sums.first[i], a.sums.second[i]);    \
  }

#endif
