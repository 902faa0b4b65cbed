/* backends/cuda/device/conv2d_f32.cu: the convolutions of f32. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/conv2d_kernels.cuh"

enum { CONV_BLOCKS = 3 };

CONV_KERNELS(f32, f32)
