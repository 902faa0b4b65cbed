/* backends/cuda/device/attention_f64.cu: attention on f64. */
#include "backends/cuda/device/prelude.cuh"
#include "backends/cuda/device/attention_kernels.cuh"

ATTENTION_KERNELS(f64, f64, 2)
