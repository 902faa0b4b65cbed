/* tests/fakecuda/driver/modules.h: modules and their functions. They stay in memory until their context is
 * released, so that a graph that outlives its module faults. */
#pragma once

#include "tests/fakecuda/driver/driver.h"
#include "tests/fakecuda/kernels/module.h"

typedef struct fake_kernel fake_kernel;

typedef struct fake_loaded {
  fake_context *context;
  CUmodule handle;
  uint64_t number;
  fake_module *_Atomic image; /* NULL: unloaded */
  fake_kernel *kernels;
  struct fake_loaded *next;
} fake_loaded;

struct fake_kernel {
  fake_loaded *module;
  CUfunction handle;
  char name[128];
  const fake_function *function;
  uint32_t most_dynamic; /* dynamic shared memory that a launch may have */
  fake_kernel *next;
};

enum {
  FAKE_SHARED = 49152,
  FAKE_SHARED_OPTIN = 232448,
  FAKE_SHARED_PROCESSOR = 233472,
  FAKE_SHARED_RESERVED = 1024
};

/* The live function of the current context. */
CUresult fake_kernel_find(const fake_call *call, CUfunction handle, fake_kernel **kernel);
