/* backends/cuda/device/attention_bf16.cu: attention on bf16. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/attention_kernels.cuh"

ATTENTION_KERNELS(bf16, f32, 4)
