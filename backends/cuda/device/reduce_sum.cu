/* backends/cuda/device/reduce_sum.cu: sums over any axes. */
#include "backends/cuda/device/reduce_kernels.cuh"

REDUCE_NUMBERS(reduce_sum, sum_of)
