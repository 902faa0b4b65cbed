/* backends/cuda/modules/compile.h: NVRTC: from a text to an image that the driver loads. */
#pragma once

#include <stdbool.h>

#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/modules/sums.h"

enum { TN_CUDA_ERROR_TEXT = 2048 };

/* All that an image depends on, besides the text. */
typedef struct tn_cuda_compiler {
  const tn_cuda_libraries *libraries;
  char arch[32]; /* "sm_90", or "compute_90" where NVRTC is older than the device: the driver compiles PTX */
  tn_cuda_hash headers; /* of the headers of device/ and the flags */
} tn_cuda_compiler;

typedef struct tn_cuda_image {
  void *bytes; /* of malloc; NULL: none */
  size_t n;
} tn_cuda_image;

/* Finds the architecture for a device among those that NVRTC supports. */
tn_status tn_cuda_compiler_open(tn_env *env, const tn_cuda_libraries *libraries, int32_t arch,
                                tn_cuda_compiler *compiler);
typedef enum tn_cuda_compiled {
  TN_CUDA_COMPILED,
  TN_CUDA_REFUSED, /* the text does not compile */
  TN_CUDA_FAILED   /* the compiler could not do its work */
} tn_cuda_compiled;

/* Compiles. Any thread. Without an image the first line of `error` says why, with the first error of the
 * compiler's log, and the log follows. With one `error` holds the warnings, or is "". */
tn_cuda_compiled tn_cuda_compile(const tn_cuda_compiler *compiler, const char *title, const char *text,
                                 tn_cuda_image *image, char error[TN_CUDA_ERROR_TEXT]);
