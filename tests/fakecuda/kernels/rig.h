/* tests/fakecuda/kernels/rig.h: tests compile CUDA C with the double of NVRTC and launch it. */
#pragma once

#include "tests/fakecuda/kernels/module.h"

/* Compiles a source, which must have no error, and loads it. Asserts. The log goes into a failure. */
fake_module *rig_compile(const char *source, const char *name);
/* The same for a file of tests/fakecuda/kernels/sources. */
fake_module *rig_compile_file(const char *name);
/* The text of such a file; the caller frees it. */
char *rig_read_source(const char *name);

/* Launches a kernel whose parameters are all of 8 bytes: pointers, and integers of 64 bits. Returns the code
 * of the launch; the reason is in rig_why. */
int rig_launch(const fake_module *module, const char *kernel, fake_launch launch, const uint64_t *parameters,
               int32_t count);
extern char rig_why[FAKE_TEXT];

#define RIG_POINTER(p) ((uint64_t)(uintptr_t)(p))
#define RIG_LAUNCH(module, kernel, launch, ...)                                                              \
  rig_launch(module, kernel, launch, (const uint64_t[]){__VA_ARGS__},                                        \
             (int32_t)(sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

/* One-dimensional. */
static inline fake_launch rig_line(uint32_t blocks, uint32_t threads, uint32_t shared, uint64_t seed) {
  return (fake_launch){
      .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .shared_bytes = shared, .seed = seed};
}
