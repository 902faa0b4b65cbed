/* backends/cuda/device/conv2d_f16.cu: the convolutions of f16. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/conv2d_kernels.cuh"

enum { CONV_BLOCKS = 3 };

CONV_KERNELS(f16, f32)
