/* backends/cpu/team.c: persistent threads that share the chunks of a parallel loop.
 *
 * One word, the ticket, holds the number of the loop (upper half) and the next unit to hand out
 * (lower half); whoever raises it by compare-and-swap owns that unit. A thread that wakes late still
 * holds the ticket of an older loop, so its swap fails and it cannot take work of a newer loop with
 * the older one's function. Between loops the lower half is CLOSED, and only then are body, arg and
 * size changed; so whoever reads them under an open ticket and then wins the swap has read the right
 * ones. The caller leaves when all units are done; threads that sleep through a loop cost nothing.
 *
 * Who goes to sleep says so first, in a count or a flag; who wakes takes that back for it, and posts the
 * semaphore once for each that it took. So a post never goes missing, and no lock is needed: the thread
 * that launches a training step must take none. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "backends/cpu/cpu.h"

#define CLOSED   UINT64_C(0xffffffff)
#define LOOP_ONE (UINT64_C(1) << 32)

enum {
  SPINS = 2000, /* looks at a word before a thread goes to sleep: some 50 microseconds */
  MOST_UNITS = 1 << 30
};

typedef void (*chunk_body)(void *arg, int64_t chunk);

struct tn_cpu_team {
  tn_env env;
  int32_t n_workers; /* started so far */
  pthread_t *workers;
  atomic_bool busy; /* a loop is running: the next one runs inline */
  atomic_bool stop;

  _Atomic(uint64_t) ticket;
  _Atomic(chunk_body) body;
  _Atomic(void *) arg;
  _Atomic(int64_t) chunks, grain; /* a unit is `grain` chunks, the last one what is left */
  _Atomic(int64_t) units, done;

  sem_t work, finished; /* posted to wake workers, and the caller */
  _Atomic(int32_t) sleepers;
  atomic_bool caller_sleeps;
};

static void await(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
}

/* Tells the processor that this is a waiting loop. */
static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* CLOSED is more than any number of units. */
static bool is_open(const tn_cpu_team *t, uint64_t ticket) {
  return (int64_t)(ticket & CLOSED) < atomic_load_explicit(&t->units, memory_order_relaxed);
}

static void run_unit(chunk_body body, void *arg, int64_t first, int64_t stop) {
  for (int64_t chunk = first; chunk < stop; chunk++) body(arg, chunk);
}

/* The last unit done wakes the caller if it has gone to sleep. */
static void finish_unit(tn_cpu_team *t, int64_t units) {
  if (atomic_fetch_add(&t->done, 1) + 1 < units) return;
  if (atomic_exchange(&t->caller_sleeps, false)) sem_post(&t->finished);
}

/* Takes units of the open loop until none is left. */
static void take_units(tn_cpu_team *t) {
  uint64_t ticket = atomic_load(&t->ticket);
  for (;;) {
    if (!is_open(t, ticket)) return;
    chunk_body body = atomic_load_explicit(&t->body, memory_order_relaxed);
    void *arg = atomic_load_explicit(&t->arg, memory_order_relaxed);
    int64_t chunks = atomic_load_explicit(&t->chunks, memory_order_relaxed);
    int64_t grain = atomic_load_explicit(&t->grain, memory_order_relaxed);
    int64_t units = atomic_load_explicit(&t->units, memory_order_relaxed);
    if (!atomic_compare_exchange_weak(&t->ticket, &ticket, ticket + 1)) continue;
    int64_t first = (int64_t)(ticket & CLOSED) * grain;
    run_unit(body, arg, first, first + grain < chunks ? first + grain : chunks);
    finish_unit(t, units);
    ticket = atomic_load(&t->ticket);
  }
}

static bool has_news(tn_cpu_team *t) { return atomic_load(&t->stop) || is_open(t, atomic_load(&t->ticket)); }

/* Takes at most `wanted` sleepers out of the count; returns how many. */
static int32_t take_sleepers(tn_cpu_team *t, int64_t wanted) {
  int32_t asleep = atomic_load(&t->sleepers), taken;
  do taken = wanted < asleep ? (int32_t)wanted : asleep;
  while (taken > 0 && !atomic_compare_exchange_weak(&t->sleepers, &asleep, asleep - taken));
  return taken;
}

/* May return without any: the one that did the waking counts sleepers, not who they are. */
static void wait_for_work(tn_cpu_team *t) {
  for (int32_t i = 0; i < SPINS; i++) {
    if (has_news(t)) return;
    relax();
  }
  atomic_fetch_add(&t->sleepers, 1);
  if (has_news(t) && take_sleepers(t, 1) == 1) return;
  await(&t->work);
}

static void *worker_main(void *arg) {
  tn_cpu_team *t = arg;
  for (;;) {
    wait_for_work(t);
    if (atomic_load(&t->stop)) return NULL;
    take_units(t);
  }
}

/* Opens a loop. The sleepers' count is read after the ticket is written, and they look at the ticket
 * after they have counted themselves, all in one total order: nobody sleeps through by accident. */
static void open_loop(tn_cpu_team *t, int64_t chunks, chunk_body body, void *arg) {
  int64_t grain = (chunks - 1) / MOST_UNITS + 1, units = (chunks - 1) / grain + 1;
  uint64_t number = (atomic_load(&t->ticket) & ~CLOSED) + LOOP_ONE;
  atomic_store_explicit(&t->body, body, memory_order_relaxed);
  atomic_store_explicit(&t->arg, arg, memory_order_relaxed);
  atomic_store_explicit(&t->chunks, chunks, memory_order_relaxed);
  atomic_store_explicit(&t->grain, grain, memory_order_relaxed);
  atomic_store_explicit(&t->units, units, memory_order_relaxed);
  atomic_store_explicit(&t->done, 0, memory_order_relaxed);
  atomic_store(&t->ticket, number);
  for (int32_t wake = take_sleepers(t, units - 1); wake > 0; wake--) sem_post(&t->work);
}

/* Whoever did the last unit of an earlier loop may be so late that it takes the flag of this one and posts,
 * so only the count says that the loop is over. */
static void close_loop(tn_cpu_team *t) {
  int64_t units = atomic_load_explicit(&t->units, memory_order_relaxed);
  for (int32_t i = 0; i < SPINS && atomic_load(&t->done) < units; i++) relax();
  while (atomic_load(&t->done) < units) {
    atomic_store(&t->caller_sleeps, true);
    bool undisturbed = atomic_load(&t->done) == units && atomic_exchange(&t->caller_sleeps, false);
    if (!undisturbed) await(&t->finished);
  }
  atomic_store(&t->ticket, atomic_load(&t->ticket) | CLOSED);
}

void tn_cpu_team_run(tn_cpu_team *t, int64_t chunks, chunk_body body, void *arg) {
  bool idle = false;
  if (chunks <= 0) return;
  if (chunks == 1 || t->n_workers == 0 || !atomic_compare_exchange_strong(&t->busy, &idle, true)) {
    run_unit(body, arg, 0, chunks);
    return;
  }
  open_loop(t, chunks, body, arg);
  take_units(t);
  close_loop(t);
  atomic_store(&t->busy, false);
}

static int bind_to(pthread_attr_t *attributes, int64_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (processor < 0 || processor >= CPU_SETSIZE) return EINVAL;
  CPU_SET((size_t)processor, &one);
  return pthread_attr_setaffinity_np(attributes, sizeof one, &one);
}

/* Workers take no signals: those belong to the threads of the application. */
static int start_worker(tn_cpu_team *t, const tn_ints *pin, pthread_t *worker) {
  sigset_t all, before;
  pthread_attr_t attributes;
  int32_t number = t->n_workers + 1; /* in the team, where the caller is 0 */
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  if (number < pin->n) error = bind_to(&attributes, pin->v[number]);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error == 0) error = pthread_create(worker, &attributes, worker_main, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

tn_status tn_cpu_team_create(tn_env *env, int32_t threads, const tn_ints *pin, tn_cpu_team **team) {
  *team = NULL;
  tn_cpu_team *t = tn_new(env, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  t->env = *env;
  atomic_init(&t->ticket, CLOSED);
  sem_init(&t->work, 0, 0);
  sem_init(&t->finished, 0, 0);
  t->workers = tn_new(env, sizeof *t->workers * (size_t)(threads > 0 ? threads : 1));
  int error = t->workers == NULL ? -1 : 0;
  for (int32_t i = 1; i < threads && error == 0; i++) {
    error = start_worker(t, pin, &t->workers[t->n_workers]);
    if (error == 0) t->n_workers++;
  }
  if (error == 0) {
    *team = t;
    return TN_OK;
  }
  int32_t started = t->n_workers + 1;
  tn_cpu_team_destroy(t);
  if (error < 0) return TN_ENOMEM;
  return tn_fail(env, TN_EUNAVAILABLE, "threads", "cpu: thread %d of %d did not start (%s); ask for fewer",
                 started + 1, threads, strerror(error));
}

void tn_cpu_team_destroy(tn_cpu_team *t) {
  if (t == NULL) return;
  atomic_store(&t->stop, true);
  for (int32_t i = 0; i < t->n_workers; i++) sem_post(&t->work);
  for (int32_t i = 0; i < t->n_workers; i++) pthread_join(t->workers[i], NULL);
  sem_destroy(&t->finished);
  sem_destroy(&t->work);
  tn_delete(&t->env, t->workers);
  tn_delete(&t->env, t);
}
