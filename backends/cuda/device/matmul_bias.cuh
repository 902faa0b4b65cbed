/* backends/cuda/device/matmul_bias.cuh: the arguments of matmul_bias, for host and device. */
#ifndef TN_CUDA_MATMUL_BIAS_CUH
#define TN_CUDA_MATMUL_BIAS_CUH

struct matmul_bias_args {
  void *y;
  const void *bias; /* NULL: zeros */
  long long rows, columns;
  int empty; /* 1: the product has no terms, so y is the bias alone */
  int pad;
};

#endif
