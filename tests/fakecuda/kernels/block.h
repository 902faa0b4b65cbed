/* tests/fakecuda/kernels/block.h: the threads of one block as fibers. */
#pragma once

#include "tests/fakecuda/kernels/fiber.h"
#include "tests/fakecuda/kernels/image.h"
#include "tests/fakecuda/kernels/module.h"

#include <stdbool.h>

enum { FAKE_MAX_THREADS = 1024, FAKE_WARP = 32 };

typedef enum fake_state {
  FAKE_READY, /* has not begun, or may go on */
  FAKE_AT_BARRIER,
  FAKE_AT_WARP,
  FAKE_EXITED
} fake_state;

typedef struct fake_thread {
  fake_fiber *fiber; /* NULL: has not begun, or has exited */
  fake_state state;
  fake_index index;
  fake_barrier *barrier;
  fake_warp *warp;
} fake_thread;

/* The state of the launches of a thread of the host. */
typedef struct fake_block {
  fake_fiber host, *self;
  fake_fiber fibers[FAKE_MAX_THREADS];
  fake_fiber *idle[FAKE_MAX_THREADS]; /* begun, and without a thread */
  int32_t n_allocated, n_begun, n_idle;

  fake_here *here;
  const fake_kernel *kernel;
  const char *name;
  const void *buffer;
  uint64_t random; /* 0: threads run in their own order */

  fake_thread threads[FAKE_MAX_THREADS];
  int16_t ready[FAKE_MAX_THREADS];
  uint32_t waiting[FAKE_MAX_THREADS / FAKE_WARP]; /* lanes at an operation of their warp */
  int32_t n_threads, n_ready, n_alive, n_at_barrier, current;
  unsigned long long ticks;
  char *why; /* FAKE_TEXT bytes */
  bool failed;
} fake_block;

/* The block of the calling thread, or NULL: there is no memory. It is freed when the thread ends. */
fake_block *fake_block_get(void);
/* Before the blocks of a launch: here, kernel, name, buffer, random, n_threads, why are set. */
void fake_block_prepare(fake_block *block, fake_dim dim);
/* Runs a block. Returns 0, or -1 with a reason in block->why. */
int fake_block_run(fake_block *block);
/* Ends the launch with a reason. Does not return to a fiber of the launch. */
void fake_block_fail(fake_block *block, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For the code of the image. */
extern const fake_runtime fake_block_runtime;
