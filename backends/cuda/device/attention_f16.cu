/* backends/cuda/device/attention_f16.cu: attention on f16. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/attention_kernels.cuh"

ATTENTION_KERNELS(f16, f32, 4)
