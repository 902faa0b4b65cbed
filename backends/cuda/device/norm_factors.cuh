/* backends/cuda/device/norm_factors.cuh: a batch norm as one factor and one summand for each channel, in f16. */
#ifndef TN_CUDA_NORM_FACTORS_CUH
#define TN_CUDA_NORM_FACTORS_CUH

struct norm_factors_args {
  const float *mean, *rstd, *gamma, *beta;
  void *factor, *summand; /* rstd gamma; beta - mean rstd gamma */
  long long channels;
};

#endif
