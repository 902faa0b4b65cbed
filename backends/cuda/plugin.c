/* backends/cuda/plugin.c: the descriptor: the backend `cuda` and its kernels. */
#include "backends/cuda/objects.h"
#include "backends/cuda/kernels/kernels.h"

#define ITEM(name) , &tn_cuda_##name.item
TN_PLUGIN(cuda, "0.1.0", "MIT", &tn_cuda_backend.item TN_CUDA_KERNELS(ITEM))
