/* tests/fakecuda/nvrtc/options.h: the options of nvrtcCompileProgram. */
#pragma once

#include "tests/fakecuda/nvrtc/text.h"

#include <stdint.h>

typedef struct nvrtc_options {
  int32_t architecture; /* 80 of sm_80 and of compute_80 */
  char suffix;          /* 'a' of sm_90a, or 0 */
  bool cubin;           /* sm_, not compute_ */
  char standard[8];     /* "c++17" */
  char **preprocessor;  /* -D, -U, -I, -include of the compiler of the host */
  int32_t n_preprocessor;
} nvrtc_options;

/* The architectures that the version of the header supports. */
const int *nvrtc_architectures(int32_t *count);
/* False: `log` has a reason in the words of NVRTC, and the options are to be freed all the same. */
bool nvrtc_read_options(int32_t count, const char *const *given, nvrtc_options *options, nvrtc_text *log);
void nvrtc_free_options(nvrtc_options *options);
