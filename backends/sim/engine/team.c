/* backends/sim/engine/team.c: threads that share the chunks of a kernel's loop with the engine. The
 * assignment of chunks to threads is arbitrary; chunks write disjoint parts, so results do not depend on it.
 */
#include <signal.h>
#include <string.h>

#include "backends/sim/sim.h"

typedef struct tn_sim_team {
  tn_env env;
  int32_t n_threads; /* beside the engine */
  pthread_t *threads;
  atomic_bool stop, busy; /* busy: a loop runs; a nested loop runs on its thread */
  tn_sim_signal work, finished;
  /* the loop: written by the engine while no helper is inside */
  void (*body)(void *arg, int64_t chunk);
  void *arg;
  int64_t chunks;
  _Atomic(int64_t) next;
  _Atomic(int32_t) inside; /* helpers that may read the loop; CLOSED keeps them out */
} tn_sim_team;

enum { CLOSED = -0x40000000 };

static void sim_team_take_chunks(tn_sim_team *t) {
  int64_t chunk;
  while ((chunk = atomic_fetch_add(&t->next, 1)) < t->chunks) t->body(t->arg, chunk);
}

/* A helper enters an open loop only; the engine closes the loop before it waits for the helpers inside. */
static void sim_team_help(tn_sim_team *t) {
  if (atomic_fetch_add(&t->inside, 1) >= 0) sim_team_take_chunks(t);
  atomic_fetch_sub(&t->inside, 1);
  tn_sim_signal_raise(&t->finished);
}

static void *sim_team_helper(void *arg) {
  tn_sim_team *t = arg;
  uint32_t seen = 0;
  while (!atomic_load(&t->stop)) {
    tn_sim_signal_wait(&t->work, seen, -1);
    uint32_t now = tn_sim_signal_read(&t->work);
    if (now != seen) sim_team_help(t);
    seen = now;
  }
  return NULL;
}

void tn_sim_team_run(tn_sim_team *t, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg) {
  bool busy = t->n_threads == 0 || chunks < 2 || atomic_exchange(&t->busy, true);
  if (busy) {
    for (int64_t chunk = 0; chunk < chunks; chunk++) body(arg, chunk);
    return;
  }
  t->body = body;
  t->arg = arg;
  t->chunks = chunks;
  atomic_store(&t->next, 0);
  atomic_fetch_sub(&t->inside, CLOSED);
  tn_sim_signal_raise(&t->work);
  sim_team_take_chunks(t);
  atomic_fetch_add(&t->inside, CLOSED);
  for (;;) {
    uint32_t seen = tn_sim_signal_read(&t->finished);
    if (atomic_load(&t->inside) == CLOSED) break;
    tn_sim_signal_wait(&t->finished, seen, -1);
  }
  atomic_store(&t->busy, false);
}

/* Helpers block all signals, so the host's threads handle them. */
static int sim_team_start_helper(tn_sim_team *t, pthread_t *thread) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, sim_team_helper, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

tn_status tn_sim_team_create(tn_env *env, int32_t threads, tn_sim_team **team) {
  *team = NULL;
  tn_sim_team *t = tn_new(env, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  t->env = *env;
  atomic_store(&t->inside, CLOSED);
  t->threads = tn_new(env, sizeof *t->threads * (size_t)(threads > 0 ? threads : 1));
  int error = t->threads == NULL ? -1 : 0;
  for (int32_t i = 1; i < threads && error == 0; i++) {
    error = sim_team_start_helper(t, &t->threads[t->n_threads]);
    if (error == 0) t->n_threads++;
  }
  if (error == 0) {
    *team = t;
    return TN_OK;
  }
  int32_t started = t->n_threads + 1;
  tn_sim_team_destroy(t);
  if (error < 0) return TN_ENOMEM;
  return tn_fail(env, TN_EUNAVAILABLE, "threads", "sim: thread %d of %d did not start (%s); ask for fewer",
                 started + 1, threads, strerror(error));
}

void tn_sim_team_destroy(tn_sim_team *t) {
  if (t == NULL) return;
  atomic_store(&t->stop, true);
  tn_sim_signal_raise(&t->work);
  for (int32_t i = 0; i < t->n_threads; i++) pthread_join(t->threads[i], NULL);
  tn_delete(&t->env, t->threads);
  tn_delete(&t->env, t);
}
