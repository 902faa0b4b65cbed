/* backends/cuda/device/attention_f32.cu: attention on f32. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/attention_kernels.cuh"

ATTENTION_KERNELS(f32, f32, 4)
