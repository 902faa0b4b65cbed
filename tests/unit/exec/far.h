/* tests/unit/exec/far.h: two made-up families of devices. `near` computes at once in the host's memory.
 * `far` has addresses that the host must not use and streams that run as late as they may: what is
 * enqueued is done when somebody waits for it, and only as much of it as that takes. So a missing
 * event shows as a wrong result. */
#ifndef TN_TESTS_UNIT_EXEC_FAR_H
#define TN_TESTS_UNIT_EXEC_FAR_H

#include "core/exec/executor.h"

/* What the tests look at; zero it before use. */
typedef struct far_report {
  int opened, closed, devices, streams, events, blocks; /* now alive */
  int parallel;                                         /* calls of the family's team */
  int extension_parallel;
  int64_t threads;   /* as the options said */
  int refuse_memory; /* the n-th memory_new from now fails; 0: none */
} far_report;

/* Options of the backends: where to report. */
typedef struct far_options {
  int64_t threads, report; /* address of a far_report */
  int32_t absent;          /* no device can be used */
} far_options;

extern const tn_backend far_backend, near_backend;
/* Extends near, with a team of its own. */
extern const tn_backend quick_backend;

/* Enqueues work from a kernel: body(arg) runs when the stream gets there. arg is freed after it. */
void far_enqueue(void *stream, void (*body)(void *arg), void *arg);
/* The host's address of a device address, for such bodies. */
void *far_real(void *address);

#endif
