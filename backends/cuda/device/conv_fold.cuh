/* backends/cuda/device/conv_fold.cuh: a batch norm with given statistics, folded into the weights of the convolution before
 * it. */
#ifndef TN_CUDA_CONV_FOLD_CUH
#define TN_CUDA_CONV_FOLD_CUH

struct conv_fold_args {
  const void *weight;                        /* (outputs, inputs, pixels) */
  const float *mean, *variance;              /* of each output */
  const float *gamma, *beta;                 /* NULL: ones, zeros */
  void *to, *bias;                           /* (outputs, pixels, inputs); of each output */
  long long outputs, inputs, pixels;
  float epsilon;
  int pad;
};

#endif
