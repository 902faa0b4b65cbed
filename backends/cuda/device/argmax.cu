/* backends/cuda/device/argmax.cu: the index of the largest element along an axis, as i32. */
#include "backends/cuda/device/reduce_kernels.cuh"

REDUCE_NUMBERS(argmax, argmax_of)
