/* core/train/distributed/ranks.h: the ranks of a run, and what they tell each other beside their programs: a
 * few bytes from each to all, what rank 0 decides, and who failed first. Ranks are threads of one process
 * here; nobody outside of ranks.c relies on it.
 *
 * All ranks come to the same calls in the same order. A rank that fails says so, and then nobody waits for
 * it: whoever waits, or comes later, gets TN_ECOMM with its number and its message. */
#ifndef TN_CORE_TRAIN_DISTRIBUTED_RANKS_H
#define TN_CORE_TRAIN_DISTRIBUTED_RANKS_H

#include "core/base/env.h"

typedef struct tn_rank_set tn_rank_set;

tn_status tn_ranks_create(tn_env *env, int32_t n, tn_rank_set **ranks);
void tn_ranks_destroy(tn_rank_set *ranks);
int32_t tn_ranks_count(const tn_rank_set *ranks);

/* Runs `body` once for each rank at the same time, rank 0 on the caller's thread, and returns when all have
 * ended. TN_EUNAVAILABLE: a thread could not be started; then none of the bodies has run to its end. */
tn_status tn_ranks_run(tn_rank_set *ranks, tn_env *env, tn_status (*body)(void *context, int32_t rank),
                       void *context);

/* Hands `bytes` bytes of every rank to all of them: those of rank r lie at all + r * bytes. */
tn_status tn_ranks_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const void *mine, size_t bytes,
                          void *all);
/* What rank 0 has in `data` is then what all have there. */
tn_status tn_ranks_share(tn_rank_set *ranks, tn_env *env, int32_t rank, void *data, size_t bytes);

/* What rank 0 thinks is what all do: *decision is its number, on each rank's n-th call that of rank 0's
 * n-th. Rank 0 does not wait for the others, and nobody takes a lock. */
tn_status tn_ranks_decide(tn_rank_set *ranks, tn_env *env, int32_t rank, int32_t *decision);

/* ---- failure ---- */

/* The rank ends with a failure, whose text is in env. The first one is the cause, but a failure of another
 * kind is told before TN_ECOMM, which may be its consequence. */
void tn_ranks_fail(tn_rank_set *ranks, int32_t rank, const tn_env *env, tn_status status);
/* Called on the failing rank's thread once a rank has failed, so that what others wait for ends soon. Set
 * before tn_ranks_run. */
void tn_ranks_on_failure(tn_rank_set *ranks, void (*abort)(void *context), void *context);
/* The failure as the run's status, "rank 2: ..." in env; TN_OK: none. A device that failed counts as a rank
 * that did: TN_ECOMM. */
tn_status tn_ranks_failure(tn_rank_set *ranks, tn_env *env);

#endif
