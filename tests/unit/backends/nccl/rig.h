/* tests/unit/backends/nccl/rig.h: ranks of the communicator nccl, each with a device of the backend cuda and
 * a thread, on the doubles of NCCL and CUDA. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>

#include "backends/nccl/communicator.h"
#include "backends/nccl/rank.h"
#include "tenon/plugin/backend.h"
#include "tests/support/await.h"
#include "tests/support/test_clock.h"

enum { MOST = 4, ROOM = 4 * 64 * 8, RIG_IDENTITY = 512 };

/* A handle with a message of its own: ranks fail at the same time. */
typedef struct speaker {
  tn_env env;
  char text[2048];
} speaker;

typedef struct rank {
  speaker said;
  int32_t number;
  void *device, *stream, *copies; /* of the backend */
  tn_comm_device seat;
  tn_comm_place place;
  void *communicator;
  char *from, *to;     /* of the device */
  void *shared;        /* of the communicator; NULL: none */
  unsigned char *host; /* staging */
  tn_status opened, status;
  const tn_collective *call; /* of ranks_run */
  void *capture;             /* of ranks_capture */
  pthread_t thread;
} rank;

extern rank all[MOST];
extern const tn_backend *cuda;
extern const tn_communicator *kind;
extern tn_nccl_options options; /* of all ranks, read by ranks_start */

#define OK(call) assert_int_equal((call), TN_OK)

/* An environment variable of the doubles until ranks_end; read when a communicator is made. */
void rig_set(const char *name, const char *value);

/* Opens the backend, and makes the identity unless bytes is NULL. */
void rig_identify(const tn_comm_place *place, void *bytes);
/* Opens devices[i], or those with the ranks' numbers, for the n ranks of this process, of which place has the
 * first, and their communicators at the same time. The outcomes are in `opened`. */
void ranks_join(int32_t n, const tn_comm_place *place, const void *identity, const int32_t *devices);
/* Both, in one process: opens devices[i], or device i, for `come` of `ranks` ranks, and their communicators
 * at the same time. The outcomes are in `opened`. */
void ranks_start(int32_t ranks, int32_t come, const int32_t *devices, double timeout_s);
/* Also checks that the doubles have reported no violation, or only lines with rig_logs. */
void ranks_end(int32_t come);
/* A violation that the doubles report before the next ranks_end. */
void rig_logs(const char *text);
/* Opens the communicator of one more rank, on the caller's thread. */
void rank_open_late(rank *r);
/* Calls body for all of the first n ranks at the same time, each on a thread. */
void ranks_do(int32_t n, void (*body)(rank *r));
/* Enqueues calls[i] on rank i; NULL: nothing. The outcomes are in `status`. */
void ranks_run(int32_t n, const tn_collective *const *calls);
/* The same in two steps: the threads run in between. */
void ranks_run_begin(int32_t n, const tn_collective *const *calls);
void ranks_run_end(int32_t n);
/* The same, captured. */
void ranks_capture(int32_t n, const tn_collective *const *calls);
void rank_replay(rank *r);
void rank_wait(rank *r);
/* Waits until the status of a rank is a failure, and checks that its message has the text. */
void rank_fails(rank *r, const char *text);
/* Returns when the stream of a rank has come to its last collective. */
void rank_enters(rank *r);
/* The clock is held, and a limit of 60 s ends, when a rank waits in a collective, or in a call of NCCL. */
void rank_ends_limit(rank *r);
/* A rank in a call of the communicator asks its place whether the run has failed: the limit of 60 s ends
 * where the clock is held. For place.has_failed. */
int32_t rig_end_limit(const tn_comm_place *place);
/* place.has_failed of the ranks that are started; NULL: none. */
extern int32_t (*rig_has_failed)(const tn_comm_place *place);
void says(const rank *r, const char *text);
