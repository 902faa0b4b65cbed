/* core/distributed/ranks/exchanges.c: gatherings, broadcasts and decisions. Gatherings use a mutex and a
 * condition; decisions of rank 0 use a ring of semaphores for each other rank. Of several processes, the
 * first rank of each exchanges data with the other processes for all. */
#include "core/distributed/ranks/rank_set.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/base/system/system.h"

/* ---- waits that the watch sees ---- */

void tn_ranks_begin_wait(tn_rank_member *m, int32_t awaited) {
  atomic_store(&m->awaited, awaited);
  atomic_store(&m->since_s, tn_clock_s());
}

void tn_ranks_end_wait(tn_rank_member *m) { atomic_store(&m->since_s, 0); }

/* ---- what the flight recorder says ---- */

static tn_flight *ranks_recorder(tn_rank_member *m) { return m->all->count > 1 ? &m->flight : NULL; }

static tn_flight_wait ranks_record(tn_rank_member *m, const char *what) {
  tn_flight_exchange(ranks_recorder(m));
  return tn_flight_begin_wait(ranks_recorder(m), TN_FLIGHT_EXCHANGE, what);
}

static tn_status ranks_recorded(tn_rank_member *m, tn_env *env, const tn_flight_wait *before) {
  tn_status status = atomic_load(&m->all->failed) ? tn_ranks_lost(m->all, env) : TN_OK;
  return tn_flight_conclude(ranks_recorder(m), before, status);
}

/* ---- gatherings ---- */

static tn_rank_member *ranks_member(tn_rank_set *ranks, int32_t rank, const char *what) {
  tn_rank_member *m = &ranks->members[rank - ranks->first];
  atomic_store(&m->what, what);
  return m;
}

static bool ranks_is_first(const tn_rank_member *m) { return m == m->all->members; }

/* Returns when all ranks of this process have arrived. The lock must be held. */
static void ranks_meet(tn_rank_set *ranks, tn_rank_member *m) {
  int64_t number = ranks->gatherings;
  m->meetings++;
  if (++ranks->present == ranks->n) {
    ranks->present = 0;
    ranks->gatherings++;
    pthread_cond_broadcast(&ranks->changed);
  }
  tn_ranks_begin_wait(m, AWAITS_ALL);
  while (ranks->gatherings == number && !atomic_load(&ranks->failed))
    pthread_cond_wait(&ranks->changed, &ranks->lock);
  tn_ranks_end_wait(m);
}

/* The first rank exchanges data with other processes from now on. */
static void ranks_go_out(tn_rank_set *ranks) { atomic_store(&ranks->outside_s, HUGE_VAL); }

/* Returns when the failure is known: the listener of the link is told of it, or this process has told it. */
static void ranks_await_failure(tn_rank_set *ranks, tn_status status) {
  pthread_mutex_lock(&ranks->lock);
  while (status != TN_OK && !atomic_load(&ranks->failed)) pthread_cond_wait(&ranks->changed, &ranks->lock);
  pthread_mutex_unlock(&ranks->lock);
}

static void ranks_come_back(tn_rank_set *ranks, tn_status status) {
  if (status != TN_OK) ranks_await_failure(ranks, status);
  atomic_store(&ranks->outside_s, tn_clock_s());
}

/* A copy of the data of all members, which may leave once the lock is given back. The lock must be held. */
static char *ranks_collect(tn_rank_set *ranks, tn_env *env, size_t bytes) {
  size_t n = (size_t)ranks->n;
  char *mine = tn_alloc(env, tn_size_add(tn_size_mul(n, bytes), 1));
  for (size_t i = 0; mine != NULL && i < n && bytes > 0; i++)
    memcpy(mine + i * bytes, ranks->members[i].data, bytes);
  return mine;
}

/* A gathering, of the rank that has called for it. */
typedef struct rank_gathering {
  const void *data;
  size_t bytes;
  void *all;
  bool to_all; /* false: for rank 0 */
} rank_gathering;

static void ranks_gather_processes(tn_rank_set *ranks, tn_env *env, tn_rank_member *m,
                                   const rank_gathering *g, const char *mine) {
  const char *what = atomic_load(&m->what);
  if (mine == NULL) {
    tn_ranks_fail(ranks, m->rank, env, TN_ENOMEM);
    return;
  }
  ranks_go_out(ranks);
  ranks_come_back(ranks, g->to_all ? tn_link_all_gather(ranks->link, what, mine, g->bytes, g->all)
                                   : tn_link_gather(ranks->link, what, mine, g->bytes, g->all));
}

/* Between two meetings the first rank does the part of its process. The lock must be held. */
static void ranks_gather_by_link(tn_rank_set *ranks, tn_env *env, tn_rank_member *m,
                                 const rank_gathering *g) {
  if (ranks_is_first(m)) {
    ranks->shared = g->all;
    char *mine = ranks_collect(ranks, env, g->bytes);
    pthread_mutex_unlock(&ranks->lock);
    ranks_gather_processes(ranks, env, m, g, mine);
    tn_release(env, mine);
    pthread_mutex_lock(&ranks->lock);
  }
  ranks_meet(ranks, m);
  if (g->to_all && !ranks_is_first(m) && g->bytes > 0 && !atomic_load(&ranks->failed))
    memcpy(g->all, ranks->shared, (size_t)ranks->count * g->bytes);
}

/* The lock must be held. */
static void ranks_gather_members(const tn_rank_set *ranks, const tn_rank_member *m, const rank_gathering *g) {
  if (g->bytes == 0 || (!g->to_all && m->rank != 0)) return;
  for (int32_t r = 0; r < ranks->n && !atomic_load(&ranks->failed); r++)
    memcpy((char *)g->all + (size_t)r * g->bytes, ranks->members[r].data, g->bytes);
}

/* The first meeting publishes the data, the last one ends their use. */
static tn_status ranks_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const char *what,
                              const rank_gathering *g) {
  tn_rank_member *m = ranks_member(ranks, rank, what);
  tn_flight_wait before = ranks_record(m, what);
  pthread_mutex_lock(&ranks->lock);
  m->data = g->data;
  ranks_meet(ranks, m);
  if (ranks->link == NULL)
    ranks_gather_members(ranks, m, g);
  else if (!atomic_load(&ranks->failed))
    ranks_gather_by_link(ranks, env, m, g);
  ranks_meet(ranks, m);
  pthread_mutex_unlock(&ranks->lock);
  return ranks_recorded(m, env, &before);
}

tn_status tn_ranks_all_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const char *what,
                              const void *mine, size_t bytes, void *all) {
  return ranks_gather(ranks, env, rank, what, &(rank_gathering){mine, bytes, all, true});
}

tn_status tn_ranks_gather(tn_rank_set *ranks, tn_env *env, int32_t rank, const char *what, const void *mine,
                          size_t bytes, void *all) {
  return ranks_gather(ranks, env, rank, what, &(rank_gathering){mine, bytes, all, false});
}

/* The first rank of another process than that of rank 0 gets the data for all. The lock must be held. */
static void ranks_broadcast_processes(tn_rank_set *ranks, tn_rank_member *m, void *data, size_t bytes) {
  if (ranks_is_first(m)) {
    pthread_mutex_unlock(&ranks->lock);
    ranks_go_out(ranks);
    ranks_come_back(ranks, tn_link_broadcast(ranks->link, atomic_load(&m->what), data, bytes));
    pthread_mutex_lock(&ranks->lock);
  }
  ranks_meet(ranks, m);
}

tn_status tn_ranks_broadcast(tn_rank_set *ranks, tn_env *env, int32_t rank, const char *what, void *data,
                             size_t bytes) {
  tn_rank_member *m = ranks_member(ranks, rank, what);
  tn_flight_wait before = ranks_record(m, what);
  pthread_mutex_lock(&ranks->lock);
  m->data = data;
  ranks_meet(ranks, m);
  if (ranks->link != NULL && !atomic_load(&ranks->failed)) ranks_broadcast_processes(ranks, m, data, bytes);
  if (!ranks_is_first(m) && bytes > 0 && !atomic_load(&ranks->failed))
    memcpy(data, ranks->members[0].data, bytes);
  ranks_meet(ranks, m);
  pthread_mutex_unlock(&ranks->lock);
  return ranks_recorded(m, env, &before);
}

static tn_status ranks_tell(tn_rank_set *ranks, tn_env *env, const char *what, void *data, size_t bytes) {
  tn_status status = tn_link_broadcast(ranks->link, what, data, bytes);
  if (status != TN_OK) ranks_await_failure(ranks, status);
  return status == TN_OK ? TN_OK : tn_ranks_lost(ranks, env);
}

/* The most bytes of a text: the number comes from outside, and memory is allocated for it. */
enum { MOST_TEXT = 64 << 20 };

tn_status tn_ranks_tell_text(tn_rank_set *ranks, tn_env *env, const char *what, char **text) {
  bool tells = ranks->first == 0;
  if (ranks->link == NULL) return TN_OK;
  uint64_t bytes = tells ? strlen(*text) : 0;
  TN_TRY(ranks_tell(ranks, env, what, &bytes, sizeof bytes));
  if (bytes > MOST_TEXT)
    return tn_failf(env, TN_ECOMM, "the text of process 0 ('%s') has %llu bytes, expected at most %d", what,
                    (unsigned long long)bytes, MOST_TEXT);
  if (!tells) *text = tn_alloc(env, tn_size_add((size_t)bytes, 1));
  if (*text == NULL) return TN_ENOMEM;
  return ranks_tell(ranks, env, what, *text, (size_t)bytes);
}

tn_status tn_ranks_leave(tn_rank_set *ranks, tn_env *env) {
  tn_status status = ranks->link != NULL ? tn_link_leave(ranks->link) : TN_OK;
  if (status == TN_OK) return TN_OK;
  ranks_await_failure(ranks, status);
  return tn_ranks_lost(ranks, env);
}

/* ---- decisions ---- */

static void ranks_await(tn_rank_member *m, sem_t *semaphore, int32_t rank) {
  if (sem_trywait(semaphore) == 0) return;
  tn_ranks_begin_wait(m, rank);
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
  tn_ranks_end_wait(m);
}

static void ranks_send_decision(tn_rank_set *ranks, int32_t to, int32_t decision) {
  tn_rank_mailbox *box = &ranks->members[to].box;
  ranks_await(&ranks->members[0], &box->vacant, ranks->members[to].rank);
  box->decisions[box->sent++ % MAILBOX] = decision;
  sem_post(&box->filled);
}

static tn_status ranks_link_decision(tn_rank_set *ranks, int32_t *decision) {
  ranks_go_out(ranks);
  tn_status status = ranks->first > 0 ? tn_link_next_decision(ranks->link, decision)
                                      : tn_link_send_decision(ranks->link, *decision);
  ranks_come_back(ranks, status);
  return status;
}

/* The first rank of a process passes the decision on to the others. */
static void ranks_pass_decision(tn_rank_set *ranks, int32_t *decision) {
  tn_status status = ranks->link != NULL ? ranks_link_decision(ranks, decision) : TN_OK;
  for (int32_t r = 1; r < ranks->n && status == TN_OK; r++) ranks_send_decision(ranks, r, *decision);
}

tn_status tn_ranks_decide(tn_rank_set *ranks, tn_env *env, int32_t rank, int32_t *decision) {
  tn_rank_member *m = ranks_member(ranks, rank, "the next step");
  tn_flight_wait before = ranks_record(m, "the next step");
  if (ranks_is_first(m)) {
    ranks_pass_decision(ranks, decision);
  } else {
    tn_rank_mailbox *box = &m->box;
    ranks_await(m, &box->filled, ranks->first);
    /* a failure posts without a decision */
    if (!atomic_load(&ranks->failed)) *decision = box->decisions[box->received++ % MAILBOX];
    sem_post(&box->vacant);
  }
  return ranks_recorded(m, env, &before);
}
