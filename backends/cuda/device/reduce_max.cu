/* backends/cuda/device/reduce_max.cu: largest elements over any axes; NaN where one is. */
#include "backends/cuda/device/reduce_kernels.cuh"

REDUCE_NUMBERS(reduce_max, largest_of)
