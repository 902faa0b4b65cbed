/* tests/fakecuda/kernels/module.h: CUDA C that has been compiled for the host: modules, functions, launches.
 *
 * An image is what the double of NVRTC returns in place of a cubin: the bytes of an ELF shared object for the
 * host, with an entry for each __global__ function. A launch runs each thread of a block as a fiber, one
 * block after the other, on the calling thread; blocks and the fibers of a block are taken in an order that
 * `seed` decides. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FAKE_TEXT = 512 };

typedef struct fake_module fake_module;
typedef struct fake_function fake_function;

typedef struct fake_dim {
  uint32_t x, y, z;
} fake_dim;

typedef struct fake_launch {
  fake_dim grid, block;
  uint32_t shared_bytes; /* dynamic shared memory */
  uint64_t seed; /* 0: blocks and threads in the order of their numbers, which is the easiest to debug */
} fake_launch;

/* NULL, with a reason in `why`: the bytes are no image of this double (a fatbin of nvcc, for example). Any
 * thread. */
fake_module *fake_module_load(const void *image, char why[FAKE_TEXT]);
void fake_module_unload(fake_module *module);
/* NULL: the module has no such kernel. Valid until the module is unloaded. */
const fake_function *fake_module_function(const fake_module *module, const char *name);

/* The parameters of a kernel: how many, and size and offset of each in a buffer of all of them. */
int32_t fake_function_parameters(const fake_function *function);
size_t fake_function_parameter_bytes(const fake_function *function, int32_t index);
size_t fake_function_parameter_offset(const fake_function *function, int32_t index);
size_t fake_function_buffer_bytes(const fake_function *function);
/* Static shared memory, and the largest block of __launch_bounds__ (1024 without). */
uint32_t fake_function_shared_bytes(const fake_function *function);
uint32_t fake_function_max_threads(const fake_function *function);

/* Runs a launch with the parameters in `buffer`. Returns 0, or -1 with a reason in `why`: a barrier that a
 * part of a block does not reach, a shuffle with a lane that is not there, a block that is too large. One
 * launch at a time on a thread; several threads at once. */
int fake_function_run(const fake_function *function, const fake_launch *launch, const void *buffer,
                      char why[FAKE_TEXT]);
