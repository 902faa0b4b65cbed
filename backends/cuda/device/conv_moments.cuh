/* backends/cuda/device/conv_moments.cuh: mean and biased variance of each channel from sums. */
#ifndef TN_CUDA_CONV_MOMENTS_CUH
#define TN_CUDA_CONV_MOMENTS_CUH

struct conv_moments_args {
  const float *sum, *squares; /* of the elements, of their squares */
  float *mean, *variance;
  long long channels;
  double count; /* elements of a channel */
};

#endif
