/* tests/fakecuda/kernels/load.h: the parts of a module that a launch reads. */
#pragma once

#include "tests/fakecuda/kernels/block.h"

typedef struct load_range {
  ptrdiff_t offset;
  size_t bytes;
} load_range;

struct fake_function {
  const fake_kernel *kernel;
  const fake_module *module;
  const char *name;
  uint32_t shared_bytes;
};

struct fake_module {
  void *handle;
  const fake_image *image;
  fake_function *functions;
  /* Thread-local storage of the image: where the built-in variables lie in it, and the static shared memory.
   */
  ptrdiff_t tls_to_here;
  load_range poisoned[3];
  int32_t n_poisoned;
};
