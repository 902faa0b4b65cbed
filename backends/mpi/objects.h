/* backends/mpi/objects.h: collectives of host memory by MPI-3. One thread of the process makes all calls of
 * MPI.
 *
 * The files, each of which calls only those above it:
 *   calls.c       the calls of one collective
 *   world.c       MPI's beginning and end in this process, and the ranks' agreement that they are one run
 *   serve.c       the collectives of a rank, one after another, on the thread
 *   thread.c      the thread, and what the host asks of it
 *   plugin.c      the descriptor */
#pragma once

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/shared/clock.h"
#include "tenon/plugin/communicator.h"

#define TN_MPI_TRY(call)                                                                                     \
  do {                                                                                                       \
    tn_status tried = (call);                                                                                \
    if (tried != TN_OK) return tried;                                                                        \
  } while (0)

typedef struct tn_mpi_options {
  int64_t piece; /* elements that are sent together */
} tn_mpi_options;

/* By which the ranks of a run recognize each other: rank 0's random number. */
typedef struct tn_mpi_identity {
  uint64_t number[2];
} tn_mpi_identity;

/* ---- calls.c ---- */

enum { TN_MPI_LANES = 2 }; /* pieces of a collective that are under way together */

/* The memory of a piece. */
typedef struct tn_mpi_lane {
  MPI_Request scattered, gathered; /* its two stages */
  int *counts;                     /* of the calls, which keep them until they end */
  void *received;
} tn_mpi_lane;

/* The collective that is under way. */
typedef struct tn_mpi_calls {
  tn_collective collective;
  MPI_Comm comm;
  int32_t rank, ranks;
  int64_t piece;            /* elements */
  int64_t next, reduced, n; /* pieces: begun, past their first stage, and all */
  tn_mpi_lane lanes[TN_MPI_LANES];
  const void **from; /* per rank: the operands of a reduction */
} tn_mpi_calls;

/* MPI_DATATYPE_NULL: there is no such dtype. */
MPI_Datatype tn_mpi_type(int32_t dtype);
/* false: no memory. tn_mpi_calls_delete frees what there is in either case. */
bool tn_mpi_calls_new(tn_mpi_calls *calls, MPI_Comm comm, int32_t rank, int32_t ranks, int64_t piece);
void tn_mpi_calls_delete(tn_mpi_calls *calls);
/* Begins a collective; the one before it has ended. */
void tn_mpi_calls_start(tn_mpi_calls *calls, const tn_collective *collective);
/* Makes progress without waiting. *moved: a stage has ended. *done: the result is written. An error code of
 * MPI. */
int tn_mpi_calls_advance(tn_mpi_calls *calls, bool *moved, bool *done);

/* ---- a rank ---- */

enum { TN_MPI_RING = 256, TN_MPI_TEXT = 320, TN_MPI_NAME = 64 };

typedef struct tn_mpi_entry {
  tn_collective collective;
  char name[TN_MPI_NAME];
} tn_mpi_entry;

/* States of a rank on the thread. */
enum { TN_MPI_OPENING = 0, TN_MPI_OPEN = 1, TN_MPI_REFUSED = 2, TN_MPI_LEFT = 3 };

/* The message of each rank to all when the run begins. */
typedef struct tn_mpi_card {
  tn_mpi_identity identity;
  int64_t rank, ranks;
} tn_mpi_card;

typedef struct tn_mpi_rank {
  tn_mpi_options options;
  int32_t rank, ranks;
  const tn_comm_place *place;
  double timeout_s, opened_s; /* opened_s: when the host began to open it */
  tn_mpi_identity identity;
  /* Of the thread. */
  MPI_Comm comm, control;
  tn_mpi_calls calls;
  MPI_Request hears; /* a message of a rank that gives up */
  char heard[TN_MPI_TEXT];
  tn_mpi_card *cards;            /* of all ranks, and the rank's own behind them */
  bool kept;                     /* MPI may use this memory after a failure, so it is never freed */
  struct tn_mpi_rank *next_kept; /* of the process */
  /* Shared, under the lock. */
  pthread_mutex_t lock;
  pthread_cond_t asked, answered; /* to the thread; to the host */
  int32_t state;                  /* TN_MPI_OPENING ... */
  tn_status refusal;              /* TN_MPI_REFUSED: its code; the text is in failure */
  uint64_t begun, ended;
  bool closing, aborting;
  bool failed, silent; /* silent: the other ranks know */
  char failure[TN_MPI_TEXT];
  double seen_s; /* when the thread has last come back from MPI */
  tn_mpi_entry ring[TN_MPI_RING];
  _Atomic(int32_t) waiting; /* the host waits, so the thread may use its processor */
} tn_mpi_rank;

/* Records the first failure and wakes all. `silent`: other ranks have said it. */
void tn_mpi_fail(tn_mpi_rank *r, bool silent, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- world.c; on the thread ---- */

/* Whether a launcher of MPI has started this process. */
bool tn_mpi_launched(void);
/* Joins the ranks of a run: TN_OK, or a reason in r->failure. */
tn_status tn_mpi_world_join(tn_mpi_rank *r);
/* Leaves them: after a failure without a word to MPI, which is then not used again in this process. */
void tn_mpi_world_leave(tn_mpi_rank *r);
/* Ends MPI, if it was begun here and no run has failed. */
void tn_mpi_world_end(void);

/* ---- serve.c; on the thread ---- */

/* Runs collectives until the rank closes or fails. */
void tn_mpi_serve(tn_mpi_rank *r);

/* ---- thread.c ---- */

/* Hands a rank to the thread, which it starts, and waits until all ranks have come, or the timeout has
 * passed. */
tn_status tn_mpi_thread_open(tn_env *env, tn_mpi_rank *r);
/* Waits until the thread has left the rank. false: it is held in MPI, and still uses the rank. */
bool tn_mpi_thread_close(tn_mpi_rank *r);
