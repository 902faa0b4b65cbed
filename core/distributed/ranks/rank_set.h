/* core/distributed/ranks/rank_set.h: the ranks of this process, for ranks.c, exchanges.c and watch.c. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/exec/flight_recorder.h"
#include "core/distributed/ranks/hang.h"
#include "core/distributed/ranks/ranks.h"

/* Whom a rank waits for: every other rank, or the rank of this number. */
enum { AWAITS_ALL = -1 };

/* The greatest number of decisions that rank 0 may be ahead of another rank. */
enum { MAILBOX = 64 };

/* Decisions that rank 0 has sent to one other rank. */
typedef struct tn_rank_mailbox {
  sem_t filled, vacant;
  int32_t decisions[MAILBOX];
  size_t sent, received; /* counts so far; each is written by one thread */
} tn_rank_mailbox;

typedef struct tn_rank_member {
  tn_rank_set *all;
  int32_t rank;     /* of the run */
  const void *data; /* the rank's data in an exchange */
  int64_t meetings; /* at which it has arrived; under the lock */
  tn_rank_mailbox box;
  pthread_t thread;
  bool started, ended; /* `ended`: under the lock */
  tn_status outcome;
  tn_flight flight;           /* without entries where the run has one rank */
  _Atomic(int32_t) awaited;   /* AWAITS_ALL or a rank, while since_s is not 0 */
  _Atomic(double) since_s;    /* since when it waits; 0: it does not */
  _Atomic(const char *) what; /* its last exchange */
  /* Of the watch's thread: where the rank's device was before a failure. */
  bool has_position;
  tn_rank_position position;
  tn_own_time own; /* of its host and device, since the last point that the recorder shows */
} tn_rank_member;

struct tn_rank_set {
  tn_env env; /* memory, and the message of the failure */
  tn_error_record record;
  tn_rank_member *members;
  int32_t n;     /* of this process */
  tn_link *link; /* to the other processes, or NULL */
  int32_t first; /* rank of the first member */
  int32_t count; /* ranks of all processes */
  void *shared;  /* what the first member got from the other processes */

  pthread_mutex_t lock; /* protects the members below */
  pthread_cond_t changed;
  int32_t present; /* ranks that have arrived at the gathering */
  int64_t gatherings;
  tn_status status; /* of the failure that is reported */
  int32_t failed_rank;
  bool open;       /* all threads have started, or one could not be started */
  double failed_s; /* when a rank failed first */
  bool logged, stop_asked;
  /* Of the watch's thread: the last look; the last look after a failure that found a checkpoint being
   * written; whether the failure is a rank of this process that hangs. */
  double looked_s, saved_s;
  bool hangs;
  char *failures;  /* the folder for the recorders' entries, which is made after a failure; NULL: none */
  char *findings;  /* what diagnosis.c says, beside the message of the failure; NULL: nothing */
  int32_t calling; /* calls of the link that may be in the watch's functions */
  int32_t hung;    /* the first rank whose thread was left; -1: none */

  atomic_bool failed;
  atomic_int begun; /* ranks of this process that have come to their first step */
  _Atomic(double)
      outside_s; /* when the first member came back from the other processes; without end: not yet */
  tn_status (*body)(void *context, int32_t local);
  void *context;
  tn_rank_watch watch;
};

/* failure.c */
/* Wakes every waiting rank, so that it sees the failure. The lock must be held. */
void tn_ranks_wake(tn_rank_set *ranks);

/* Records a failure that the other processes know. False: it may be a consequence of an earlier one. */
bool tn_ranks_note(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status);

/* tn_ranks_fail of a failure that is no consequence of another one. */
void tn_ranks_fail_first(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status);

/* ---- waits that the watch sees ---- */

void tn_ranks_begin_wait(tn_rank_member *member, int32_t awaited);
void tn_ranks_end_wait(tn_rank_member *member);

/* diagnosis.c: after a failure, once, on the watch's thread: collects where all ranks were, finds the one
 * that others waited for, and writes the entries of the recorders. */
void tn_ranks_examine(tn_rank_set *ranks);

/* watch.c: returns when all threads have ended, or, after a failure, when the time for that is over. */
void tn_ranks_watch_until_end(tn_rank_set *ranks);
/* TN_ECOMM with the failure of the set. */
tn_status tn_ranks_lost(tn_rank_set *ranks, tn_env *env);
