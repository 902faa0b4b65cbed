/* tests/fakecuda/nvrtc/scan.h: the kernels of a preprocessed source, and the source as C++ of the host. */
#pragma once

#include "tests/fakecuda/nvrtc/text.h"

#include <stdint.h>

/* Appends to `out` the text of a preprocessed source with shared memory in thread-local storage, followed by
 * the entries of its kernels and of the name expressions. Lines keep their numbers. */
void nvrtc_scan(const char *source, const char *const *expressions, int32_t n_expressions, nvrtc_text *out);
