/* backends/cuda/device/norm_grad_sums.cu: sums of dy, and of dy (x - mean) rstd, over any axes. */
#include "backends/cuda/device/reduce_kernels.cuh"

REDUCE_FLOATS(norm_grad_sums, grads_of)
