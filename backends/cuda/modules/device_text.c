/* backends/cuda/modules/device_text.c: see device_text.h. */
#include "backends/cuda/modules/device_text.h"

const tn_cuda_text tn_cuda_texts[] = {
#include "device_text.inc"
    {NULL, NULL}};

const char *const tn_cuda_flags[] = {TN_CUDA_FLAGS, NULL};
