/* backends/cuda/plugin.c: the descriptor: the backend `cuda` and its kernels. */
#include "backends/cuda/objects.h"

#include "backends/cuda/items.h"

TN_PLUGIN(cuda, "0.1.0", "MIT", ITEMS, &tn_cuda_backend.item)
