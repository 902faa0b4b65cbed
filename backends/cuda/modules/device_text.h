/* backends/cuda/modules/device_text.h: the files of device/, as text; made by the build (tools/embed). */
#pragma once

#include <stddef.h>

typedef struct tn_cuda_text {
  const char *path; /* "backends/cuda/device/softmax.cu", as #include names it */
  const char *text; /* ends with a zero byte */
} tn_cuda_text;

/* The files; a path of NULL is the end. Headers come first, and do not end in .cu. */
extern const tn_cuda_text tn_cuda_texts[];

/* What NVRTC and nvcc compile them with, besides the architecture; NULL is the end. */
extern const char *const tn_cuda_flags[];
