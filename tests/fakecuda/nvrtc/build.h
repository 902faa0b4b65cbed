/* tests/fakecuda/nvrtc/build.h: a source becomes an image, by the C++ compiler of the host or out of the
 * cache. */
#pragma once

#include "tests/fakecuda/nvrtc/options.h"

typedef struct nvrtc_source {
  const char *text, *name;
  int32_t n_headers, n_expressions;
  const char *const *headers, *const *header_names, *const *expressions;
  const nvrtc_options *options;
} nvrtc_source;

typedef enum nvrtc_built {
  NVRTC_BUILT,
  NVRTC_REFUSED, /* the source has an error, which the log has */
  NVRTC_BROKEN   /* the compiler cannot be run, or there is no room: the log has the reason */
} nvrtc_built;

/* Appends to both texts. Any thread. */
nvrtc_built nvrtc_build(const nvrtc_source *source, nvrtc_text *image, nvrtc_text *log);
/* The words of the compiler: FAKECUDA_CXX, or g++. */
const char *nvrtc_compiler(void);
/* The text at the beginning of each source: image.h, host_cuda.h, host_math.h. */
extern const char nvrtc_host_text[];
