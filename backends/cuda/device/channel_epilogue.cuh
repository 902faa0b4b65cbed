/* backends/cuda/device/channel_epilogue.cuh: a region behind two rows of sums for each channel. */
#ifndef TN_CUDA_CHANNEL_EPILOGUE_CUH
#define TN_CUDA_CHANNEL_EPILOGUE_CUH

struct channel_epilogue_args {
  const float *first, *second;
  long long channels;
};

#endif
