/* backends/cuda/device/conv2d_f64.cu: the convolutions of f64. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/conv2d_kernels.cuh"

enum { CONV_BLOCKS = 2 };

CONV_KERNELS(f64, f64)
