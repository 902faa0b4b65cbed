/* tests/unit/backends/tcp/rig.h: ranks of the communicator `tcp` as threads or as processes, driven through
 * its table as the host does it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "backends/tcp/tcp.h"
#include "tests/support/await.h"

enum { RIG_RANKS = 8 };

/* Limits in seconds. One that would end after that of the test; and one whose end is awaited, while ranks
 * that live do a little work: a rank is late only where its thread does not run for seconds. */
enum { RIG_FOR_EVER_S = 100000, RIG_LATE_S = 3 };

/* A rank. It lies in memory that all processes share. */
typedef struct rig_rank {
  tn_env env; /* first: the handle; its messages go to `text` */
  char text[1024];
  char wrong[2048]; /* the first thing that the rank found wrong; "": nothing */
  tn_comm_place place;
  tn_tcp_options options;
  tn_tcp_identity identity;
  void *communicator; /* of the rank's own process */
  uint64_t calls;
  long delay_ms;      /* before it opens; -1: it does not open */
  int opens_at;       /* its stage when it opens; 0: any */
  _Atomic(int) stage; /* for bodies that wait for each other */
  _Atomic(int) allocations;
  pid_t process;
} rig_rank;

extern rig_rank *rig; /* RIG_RANKS ranks */

extern const tn_tcp_options rig_defaults;

/* tn_comm_place.prove, with place->job as token. */
extern const char rig_token[];
void rig_prove(const tn_comm_place *place, const void *bytes, uint64_t n, uint8_t proof[32]);

typedef void rig_body(rig_rank *r);

/* Prepares ranks and rank 0's identity. */
void rig_start(int32_t ranks, double timeout_s);
/* Opens every rank, calls `body` on each, and closes. rig_judge is called by them. A rank that cannot open
 * has the reason in `text`, and is wrong unless `body` is NULL. */
void rig_threads(rig_body *body);
void rig_processes(rig_body *body);
/* In parts: processes that are stopped or killed on the way. rig_fork starts ranks first .. last; the bodies
 * run in processes that end after it. rig_join waits for a process and returns its wait status. */
void rig_fork(int32_t first, int32_t last, rig_body *body);
int rig_join(int32_t rank);
/* Fails the test with the first thing that a rank found wrong. */
void rig_judge(void);

tn_status rig_open(rig_rank *r);
void rig_close(rig_rank *r);
/* Runs a collective and awaits it. */
tn_status rig_call(rig_rank *r, const tn_collective *call);
tn_collective rig_sum(const float *from, float *to, int64_t count);
/* Waits until another rank's stage is at least that. */
void rig_await_stage(int32_t rank, int stage);
void rig_pause_ms(long ms);
/* Records the first thing that is wrong, and leaves the body. */
#define WANT(r, holds, ...)                                                                                  \
  do {                                                                                                       \
    if (!(holds)) {                                                                                          \
      if (!(r)->wrong[0]) snprintf((r)->wrong, sizeof(r)->wrong, __VA_ARGS__);                               \
      return;                                                                                                \
    }                                                                                                        \
  } while (0)
#define WANT_OK(r, call) WANT(r, (call) == TN_OK, "line %d: %s", __LINE__, (r)->text)
#define WANT_SAID(r, part)                                                                                   \
  WANT(r, strstr((r)->text, part) != NULL, "line %d: '%s' does not say '%s'", __LINE__, (r)->text, part)
#define WANT_FAILURE(r, call, part)                                                                          \
  do {                                                                                                       \
    WANT(r, (call) == TN_ECOMM, "line %d: no failure", __LINE__);                                            \
    WANT_SAID(r, part);                                                                                      \
  } while (0)

#define OK(call) assert_int_equal((call), TN_OK)
