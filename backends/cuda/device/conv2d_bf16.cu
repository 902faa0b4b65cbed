/* backends/cuda/device/conv2d_bf16.cu: the convolutions of bf16. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/conv2d_kernels.cuh"

enum { CONV_BLOCKS = 3 };

CONV_KERNELS(bf16, f32)
