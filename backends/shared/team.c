/* backends/shared/team.c: persistent threads that share the chunks of a parallel loop, without locks.
 *
 * Taking work. One 64-bit word, the ticket, has the number of the loop in its upper half and the next unit of
 * work in its lower half. A thread takes a unit by a compare-and-swap that raises the ticket. A thread that
 * wakes late has a ticket of an older loop, so its swap fails. Between loops the lower half is CLOSED, and
 * body, arg and sizes change only then: a thread that reads them under an open ticket, and whose swap
 * succeeds, has read those of this loop. The caller returns when all units are done, also while other threads
 * sleep.
 *
 * Sleeping. A thread that goes to sleep first adds itself to a count (workers) or sets a flag (the caller). A
 * thread that wakes others first takes them out of the count, or clears the flag, and then posts the
 * semaphore once for each. So every post has a sleeper.
 *
 * Spinning. A thread that spins on a processor which another process wants is preempted for milliseconds,
 * often with a unit in hand that the others wait for. So the number of spins falls when a thread of
 * the team has been preempted, and rises slowly while none is. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "backends/shared/team.h"

#define CLOSED   UINT64_C(0xffffffff)
#define LOOP_ONE (UINT64_C(1) << 32)

enum {
  MOST_SPINS = 2000, /* reads of a word before a thread goes to sleep: about 50 microseconds */
  LEAST_SPINS = 200,
  SPINS_STEP = 16,    /* the rise, once in CHECKED_WAITS waits without preemption */
  CHECKED_WAITS = 32, /* waits of a thread between two readings of its preemptions */
  MOST_UNITS = 1 << 30
};

typedef void (*chunk_body)(void *arg, int64_t chunk);

/* The state of a thread between two readings of its preemptions. */
typedef struct team_thread {
  int32_t waits;
  long preemptions;
} team_thread;

struct tn_team {
  tn_env env;
  int32_t n_workers; /* started so far */
  pthread_t *workers;
  atomic_bool busy; /* a loop runs; another one runs on its caller's thread */
  atomic_bool stop;

  _Atomic(uint64_t) ticket;
  _Atomic(chunk_body) body;
  _Atomic(void *) arg;
  _Atomic(int64_t) chunks, grain; /* a unit is `grain` chunks; the last one may be smaller */
  _Atomic(int64_t) units, done;

  _Atomic(int32_t) spins; /* LEAST_SPINS .. MOST_SPINS */
  team_thread caller;     /* used while `busy` is held */
  sem_t work, finished;   /* posted to wake workers, and the caller */
  _Atomic(int32_t) sleepers;
  atomic_bool caller_sleeps;
};

static void team_wait(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
}

/* The processor's hint for a spinning loop. */
static inline void team_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Times that the calling thread has lost its processor to another one. */
static long team_count_preemptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

int32_t tn_team_next_spins(int32_t spins, bool preempted) {
  if (preempted) return LEAST_SPINS;
  return spins < MOST_SPINS - SPINS_STEP ? spins + SPINS_STEP : MOST_SPINS;
}

/* The number of spins of a wait. Threads may overwrite each other's change; a later wait corrects it. */
static int32_t team_choose_spins(tn_team *t, team_thread *self) {
  int32_t spins = atomic_load_explicit(&t->spins, memory_order_relaxed);
  if (++self->waits < CHECKED_WAITS) return spins;
  long preemptions = team_count_preemptions();
  spins = tn_team_next_spins(spins, preemptions != self->preemptions);
  *self = (team_thread){.preemptions = preemptions};
  atomic_store_explicit(&t->spins, spins, memory_order_relaxed);
  return spins;
}

/* CLOSED is more than any number of units. */
static bool team_is_open(const tn_team *t, uint64_t ticket) {
  return (int64_t)(ticket & CLOSED) < atomic_load_explicit(&t->units, memory_order_relaxed);
}

static void team_run_unit(chunk_body body, void *arg, int64_t first, int64_t stop) {
  for (int64_t chunk = first; chunk < stop; chunk++) body(arg, chunk);
}

/* The last unit done wakes the caller if it has gone to sleep. */
static void team_finish_unit(tn_team *t, int64_t units) {
  if (atomic_fetch_add(&t->done, 1) + 1 < units) return;
  if (atomic_exchange(&t->caller_sleeps, false)) sem_post(&t->finished);
}

/* Takes units of the open loop until none is left. */
static void team_take_units(tn_team *t) {
  uint64_t ticket = atomic_load(&t->ticket);
  for (;;) {
    if (!team_is_open(t, ticket)) return;
    chunk_body body = atomic_load_explicit(&t->body, memory_order_relaxed);
    void *arg = atomic_load_explicit(&t->arg, memory_order_relaxed);
    int64_t chunks = atomic_load_explicit(&t->chunks, memory_order_relaxed);
    int64_t grain = atomic_load_explicit(&t->grain, memory_order_relaxed);
    int64_t units = atomic_load_explicit(&t->units, memory_order_relaxed);
    if (!atomic_compare_exchange_weak(&t->ticket, &ticket, ticket + 1)) continue;
    int64_t first = (int64_t)(ticket & CLOSED) * grain;
    team_run_unit(body, arg, first, first + grain < chunks ? first + grain : chunks);
    team_finish_unit(t, units);
    ticket = atomic_load(&t->ticket);
  }
}

static bool team_has_work(tn_team *t) {
  return atomic_load(&t->stop) || team_is_open(t, atomic_load(&t->ticket));
}

/* Takes at most `wanted` sleepers out of the count; returns their number. */
static int32_t team_take_sleepers(tn_team *t, int64_t wanted) {
  int32_t asleep = atomic_load(&t->sleepers), taken;
  do taken = wanted < asleep ? (int32_t)wanted : asleep;
  while (taken > 0 && !atomic_compare_exchange_weak(&t->sleepers, &asleep, asleep - taken));
  return taken;
}

/* May return without work, since the count does not identify sleepers: a post may wake another thread. */
static void team_wait_for_work(tn_team *t, team_thread *self) {
  for (int32_t i = team_choose_spins(t, self); i > 0; i--) {
    if (team_has_work(t)) return;
    team_relax();
  }
  atomic_fetch_add(&t->sleepers, 1);
  if (team_has_work(t) && team_take_sleepers(t, 1) == 1) return;
  team_wait(&t->work);
}

static void *team_worker(void *arg) {
  tn_team *t = arg;
  team_thread self = {0};
  for (;;) {
    team_wait_for_work(t, &self);
    if (atomic_load(&t->stop)) return NULL;
    team_take_units(t);
  }
}

/* Opens a loop. This thread writes the ticket and then reads the count of sleepers; a sleeper raises the
 * count and then reads the ticket. All four are seq_cst, so a sleeper sees the open ticket or is woken. */
static void team_open_loop(tn_team *t, int64_t chunks, chunk_body body, void *arg) {
  int64_t grain = (chunks - 1) / MOST_UNITS + 1, units = (chunks - 1) / grain + 1;
  uint64_t number = (atomic_load(&t->ticket) & ~CLOSED) + LOOP_ONE;
  atomic_store_explicit(&t->body, body, memory_order_relaxed);
  atomic_store_explicit(&t->arg, arg, memory_order_relaxed);
  atomic_store_explicit(&t->chunks, chunks, memory_order_relaxed);
  atomic_store_explicit(&t->grain, grain, memory_order_relaxed);
  atomic_store_explicit(&t->units, units, memory_order_relaxed);
  atomic_store_explicit(&t->done, 0, memory_order_relaxed);
  atomic_store(&t->ticket, number);
  for (int32_t wake = team_take_sleepers(t, units - 1); wake > 0; wake--) sem_post(&t->work);
}

/* A thread that was delayed after the last unit of an earlier loop may clear this loop's flag and post, so
 * the count alone decides that the loop is done. */
static void team_close_loop(tn_team *t) {
  int64_t units = atomic_load_explicit(&t->units, memory_order_relaxed);
  int32_t spins = team_choose_spins(t, &t->caller);
  for (int32_t i = 0; i < spins && atomic_load(&t->done) < units; i++) team_relax();
  while (atomic_load(&t->done) < units) {
    atomic_store(&t->caller_sleeps, true);
    bool undisturbed = atomic_load(&t->done) == units && atomic_exchange(&t->caller_sleeps, false);
    if (!undisturbed) team_wait(&t->finished);
  }
  atomic_store(&t->ticket, atomic_load(&t->ticket) | CLOSED);
}

void tn_team_run(tn_team *t, int64_t chunks, chunk_body body, void *arg) {
  bool idle = false;
  if (chunks <= 0) return;
  if (chunks == 1 || t->n_workers == 0 || !atomic_compare_exchange_strong(&t->busy, &idle, true)) {
    team_run_unit(body, arg, 0, chunks);
    return;
  }
  team_open_loop(t, chunks, body, arg);
  team_take_units(t);
  team_close_loop(t);
  atomic_store(&t->busy, false);
}

static int team_bind_worker(pthread_attr_t *attributes, int64_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (processor < 0 || processor >= CPU_SETSIZE) return EINVAL;
  CPU_SET((size_t)processor, &one);
  return pthread_attr_setaffinity_np(attributes, sizeof one, &one);
}

/* Workers block all signals, so the application's threads handle them. */
static int team_start_worker(tn_team *t, const tn_ints *pin, pthread_t *worker) {
  sigset_t all, before;
  pthread_attr_t attributes;
  int32_t number = t->n_workers + 1; /* in the team, where the caller is 0 */
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  if (number < pin->n) error = team_bind_worker(&attributes, pin->v[number]);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error == 0) error = pthread_create(worker, &attributes, team_worker, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

tn_status tn_team_create(tn_env *env, const char *name, int32_t threads, const tn_ints *pin, tn_team **team) {
  *team = NULL;
  tn_team *t = tn_new(env, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  t->env = *env;
  atomic_init(&t->ticket, CLOSED);
  atomic_init(&t->spins, MOST_SPINS);
  sem_init(&t->work, 0, 0);
  sem_init(&t->finished, 0, 0);
  t->workers = tn_new(env, sizeof *t->workers * (size_t)(threads > 0 ? threads : 1));
  int error = t->workers == NULL ? -1 : 0;
  for (int32_t i = 1; i < threads && error == 0; i++) {
    error = team_start_worker(t, pin, &t->workers[t->n_workers]);
    if (error == 0) t->n_workers++;
  }
  if (error == 0) {
    *team = t;
    return TN_OK;
  }
  int32_t started = t->n_workers + 1;
  tn_team_destroy(t);
  if (error < 0) return TN_ENOMEM;
  return tn_fail(env, TN_EUNAVAILABLE, "threads", "%s: thread %d of %d did not start (%s); ask for fewer",
                 name, started + 1, threads, strerror(error));
}

void tn_team_destroy(tn_team *t) {
  if (t == NULL) return;
  atomic_store(&t->stop, true);
  for (int32_t i = 0; i < t->n_workers; i++) sem_post(&t->work);
  for (int32_t i = 0; i < t->n_workers; i++) pthread_join(t->workers[i], NULL);
  sem_destroy(&t->finished);
  sem_destroy(&t->work);
  tn_delete(&t->env, t->workers);
  tn_delete(&t->env, t);
}
