/* core/distributed/ranks/ranks.h: the ranks of a run, and the control data that they exchange outside their
 * programs: gatherings, broadcasts, decisions of rank 0, and failures. The ranks of a process are threads;
 * processes exchange by a link.
 *
 * All ranks make the same calls in the same order. When a rank fails, the waiting and all later calls of the
 * other ranks return TN_ECOMM with its number and message. A rank that does not come to a call is named in
 * the same way, after the time of the watch. */
#pragma once

#include "core/base/env.h"
#include "core/distributed/link/link.h"

typedef struct tn_rank_set tn_rank_set;

/* n ranks of this process. `link` goes to the other processes, or is NULL; the caller keeps it until after
 * tn_ranks_destroy. */
tn_status tn_ranks_create(tn_env *env, int32_t n, tn_link *link, tn_rank_set **ranks);
void tn_ranks_destroy(tn_rank_set *ranks);
/* Of all processes. */
int32_t tn_ranks_count(const tn_rank_set *ranks);

/* The collective that a rank's device is in. */
typedef struct tn_rank_position {
  bool inside;     /* in one */
  uint64_t number; /* as the flight recorder counts; 0: unknown */
  char name[64];
} tn_rank_position;

/* The caller's part while ranks run. */
typedef struct tn_rank_watch {
  /* Seconds that a rank may wait for another one in the exchanges below, and that the ranks have to end after
   * a failure. Without a watch there is no limit. */
  double timeout_s;
  /* Seconds after which a rank of this process hangs whose thread computes or launches, or whose device works
   * outside of collectives, without coming to a wait, a collective or an exchange. 0: no limit; below 0: that
   * of hang.h. */
  double hang_s;
  /* The state of the rank's device beside the rank's own waits; asked every 10 ms, on the caller's thread.
   * NULL where ranks have no such state. A failure is recorded as one of the rank. */
  tn_status (*status)(void *context, tn_env *env, int32_t local);
  /* The place of the rank's device; asked where `status` is good. false: unknown. NULL: of all ranks. */
  bool (*position)(void *context, int32_t local, tn_rank_position *position);
  /* Called after a failure, on the thread that has recorded it, so that pending waits of other ranks end
   * soon. Not called after tn_ranks_run. */
  void (*abort)(void *context);
  /* Called on another thread, in the process with rank 0, where another process was asked to stop
   * (tn_stop_asked of the set's env). */
  void (*stop)(void *context);
  void *context;
} tn_rank_watch;

struct tn_text;
/* Appends "rank 2", or "rank 2 (process 2, id 8124 on host b)" where there are several processes. */
void tn_ranks_add_name(const tn_rank_set *ranks, int32_t rank, struct tn_text *text);
/* The flight recorder of a rank of this process, until tn_ranks_destroy; NULL: the run has one rank. */
struct tn_flight *tn_ranks_flight(tn_rank_set *ranks, int32_t rank);
/* The folder that is made for the recorders' entries after a failure; "": they are not written. Its parent
 * may be missing, as on another host: then nothing is written. From any thread. */
tn_status tn_ranks_set_failure_folder(tn_rank_set *ranks, tn_env *env, const char *folder);

/* Called before tn_ranks_run. */
void tn_ranks_watch(tn_rank_set *ranks, const tn_rank_watch *watch);

/* Runs `body` once for each rank of this process in parallel, and returns when all have ended, with the
 * status of the first; `local` counts from 0. A single rank of a single process runs on the caller's thread,
 * others on a thread of their own while the caller watches. TN_EUNAVAILABLE: a thread could not be started,
 * and no body has run to its end.
 *
 * A rank that has not ended within the watch's limit after a failure is left: its thread is detached, and may
 * still use `ranks`, `context` and all that the body uses. The caller frees none of that. */
tn_status tn_ranks_run(tn_rank_set *ranks, tn_env *env, tn_status (*body)(void *context, int32_t local),
                       void *context);
/* A rank has come to its first step: from then on its own loop ends the run where a stop is asked for, and
 * saves. Until all ranks of a process have called this, what they wait for ends with TN_ESTOPPED. */
void tn_ranks_begin_steps(tn_rank_set *ranks);
/* The first rank of this process that was left, counted from 0; -1: none. */
int32_t tn_ranks_hung(const tn_rank_set *ranks);

/* In the exchanges, `rank` is that of the run, and `what` a static text for messages, such as "hashes of the
 * plans". */
/* All-gather: copies `bytes` bytes of every rank to all ranks; those of rank r are at all + r * bytes. */
tn_status tn_ranks_all_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const char *what,
                              const void *mine, size_t bytes, void *all);
/* Gather: the same for rank 0 alone; the others may return before it has them. `all`: on rank 0. */
tn_status tn_ranks_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const char *what, const void *mine,
                          size_t bytes, void *all);
/* Broadcast: copies `data` of rank 0 to all ranks. */
tn_status tn_ranks_broadcast(tn_rank_set *ranks, tn_env *env, int32_t rank, const char *what, void *data,
                             size_t bytes);
/* Gives all processes the text of process 0, called once in each, before tn_ranks_run. On the others *text is
 * the caller's afterwards (tn_release). One process: does nothing. */
tn_status tn_ranks_tell_text(tn_rank_set *ranks, tn_env *env, const char *what, char **text);

/* Called once in each process, behind tn_ranks_run: returns when all processes have come to it. TN_ECOMM: one
 * has failed before. */
tn_status tn_ranks_leave(tn_rank_set *ranks, tn_env *env);

/* The n-th call on any rank returns the *decision of rank 0's n-th call. Rank 0 does not wait for the others.
 * In a single process no call takes a lock. */
tn_status tn_ranks_decide(tn_rank_set *ranks, tn_env *env, int32_t rank, int32_t *decision);

/* compare_plans.c: TN_ECOMM on all ranks, with both hashes, unless the hashes of all ranks are equal. */
tn_status tn_ranks_compare_plans(tn_rank_set *ranks, tn_env *env, int32_t rank, uint64_t hash);

/* ---- failure ---- */

/* Records a failure of the rank, with the message in env. The first failure is reported, except that any
 * other status replaces TN_ECOMM, which may be its consequence. */
void tn_ranks_fail(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status);
/* Whether a rank has failed, without its message; from any thread. */
bool tn_ranks_have_failed(const tn_rank_set *ranks);
/* The failure as the status of the run, with "rank 2: ..." in env; TN_OK: no rank has failed. TN_EDEVICE of
 * one of several ranks becomes TN_ECOMM. */
tn_status tn_ranks_failure(tn_rank_set *ranks, tn_env *env);
