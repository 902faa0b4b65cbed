/* backends/cuda/device/reduce_min.cu: smallest elements over any axes; NaN where one is. */
#include "backends/cuda/device/reduce_kernels.cuh"

REDUCE_NUMBERS(reduce_min, smallest_of)
