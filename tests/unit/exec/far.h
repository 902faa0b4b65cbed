/* tests/unit/exec/far.h: two families of devices for tests. `near` computes at once in host memory. `far` has
 * addresses that the host cannot use, and streams that run as late as allowed: a wait runs only the work that
 * it needs, so a missing event gives a wrong result. */
#pragma once

#include "core/exec/executor.h"

/* Counters for the tests; zeroed before use. */
typedef struct far_report {
  int opened, closed, devices, streams, events, blocks; /* live objects */
  int parallel;                                         /* calls of the family's team */
  int64_t threads;                                      /* of the options */
  double seconds[8];                                    /* near: what event_seconds answers, in turn */
  int n_seconds, answered;
  int32_t declines[4], n_declines; /* finish_prepare declines these uses, the last one first */
  tn_status decline_code;
  int refuse_memory; /* the n-th memory_new from now fails; 0: all succeed */
  bool broken;       /* every wait for a stream fails */
} far_report;

/* Options of the backends. */
typedef struct far_options {
  int64_t threads, report; /* address of a far_report */
  int32_t absent;          /* no device can be used */
} far_options;

extern const tn_backend far_backend, near_backend;
/* Extends near, with a team of its own. */
extern const tn_backend quick_backend;

/* Enqueues body(arg) from a kernel. arg is freed after it has run. */
void far_enqueue(void *stream, void (*body)(void *arg), void *arg);
/* The host address of a device address, for such bodies. */
void *far_real(void *address);
