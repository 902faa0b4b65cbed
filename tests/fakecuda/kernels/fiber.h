/* tests/fakecuda/kernels/fiber.h: stacks that a thread of the host switches between. */
#pragma once

#include <stddef.h>

typedef struct fake_fiber {
  void *stack_pointer;
  char *stack;
  size_t stack_bytes;
  void *sanitizer; /* ASan: the fake stack; TSan: the fiber */
  void (*body)(void *arg);
  void *arg;
} fake_fiber;

/* A stack with a guard page below it. Returns 0, or -1: there is no memory. */
int fake_fiber_allocate(fake_fiber *fiber);
void fake_fiber_free(fake_fiber *fiber);
/* The next switch to the fiber calls body(arg), which must not return. Fibers with different numbers have
 * their frames at different offsets within a page. */
void fake_fiber_start(fake_fiber *fiber, int number, void (*body)(void *arg), void *arg);
/* `fiber` becomes the stack that the caller runs on. */
void fake_fiber_adopt(fake_fiber *fiber);
void fake_fiber_switch(fake_fiber *from, fake_fiber *to);
