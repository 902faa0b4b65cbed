/* backends/sim/communicator.c: collectives between simulated devices of one process.
 *
 * A collective is a task on each rank's stream (sim.h). Engines never wait for each other: the task of a rank
 * says that it has come here, and then answers TN_SIM_PENDING until all ranks have. An all_reduce has three
 * stages, as in the algorithm of Rabenseifner (ICCS 2004): each rank reduces its own part of all operands
 * into its result, then fetches the other parts from the ranks that made them, and it ends when nobody reads
 * its memory any more. So every element is reduced by one rank only, in the order of the ranks, and results
 * are the same bits everywhere and every time. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

#include "reduce.h"

enum { MOST_RANKS = 64 };

/* How far a rank has come: each counts collectives. */
enum { ARRIVED, HALFWAY, FINISHED, STAGES };

typedef struct group group;

typedef struct part {
  group *group;
  int32_t rank;
  double timeout_s;
  tn_sim_device *device; /* NULL: not here yet, or gone */
  uint64_t begun;        /* the engine's */
  tn_collective call;    /* what it has arrived at; others read it until all are finished */
  _Atomic(uint64_t) reached[STAGES];
} part;

struct group {
  pthread_mutex_t lock; /* of devices, counts, and the text */
  pthread_cond_t changed;
  int32_t ranks, present, left;
  part parts[MOST_RANKS];
  atomic_bool failed;
  char text[256];
};

/* What rank 0 sends to the others. */
typedef struct identity {
  group *group;
  uint64_t process;
} identity;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- failure ---- */

/* The lock must be held. */
static void wake_all(group *g) {
  pthread_cond_broadcast(&g->changed);
  for (int32_t r = 0; r < g->ranks; r++)
    if (g->parts[r].device != NULL) tn_sim_wake(g->parts[r].device);
}

/* The first failure is the one that is told. */
static void set_failure(group *g, const char *text) {
  pthread_mutex_lock(&g->lock);
  if (!atomic_load(&g->failed)) snprintf(g->text, sizeof g->text, "%s", text);
  atomic_store(&g->failed, true);
  wake_all(g);
  pthread_mutex_unlock(&g->lock);
}

static tn_status failure_of(group *g, tn_env *env) {
  if (!atomic_load(&g->failed)) return TN_OK;
  pthread_mutex_lock(&g->lock);
  tn_status status = tn_fail(env, TN_ECOMM, NULL, "sim: %s", g->text);
  pthread_mutex_unlock(&g->lock);
  return status;
}

/* ---- collectives, on the engines ---- */

typedef struct task {
  part *part;
  tn_collective what;
  int32_t stage; /* that this rank has reached; -1: none */
  uint64_t number;
  double since;
} task;

static const char *const names[] = {[TN_ALL_REDUCE] = "all_reduce",
                                    [TN_BROADCAST] = "broadcast",
                                    [TN_REDUCE_SCATTER] = "reduce_scatter",
                                    [TN_ALL_GATHER] = "all_gather"};

static const char *name_of(const tn_collective *what) {
  return what->name != NULL ? what->name : names[what->what];
}

static void reach(task *t, int32_t stage) {
  group *g = t->part->group;
  t->stage = stage;
  atomic_store(&t->part->reached[stage], t->number);
  pthread_mutex_lock(&g->lock);
  wake_all(g);
  pthread_mutex_unlock(&g->lock);
}

/* The first rank that is not there yet; -1: all are. */
static int32_t missing(const task *t) {
  const group *g = t->part->group;
  for (int32_t r = 0; r < g->ranks; r++)
    if (atomic_load(&g->parts[r].reached[t->stage]) < t->number) return r;
  return -1;
}

static tn_status wait_for(task *t, int32_t rank, tn_env *env) {
  group *g = t->part->group;
  char text[256];
  if (now_s() - t->since < t->part->timeout_s) return TN_SIM_PENDING;
  snprintf(text, sizeof text, "rank %d did not come to '%s' within %g s", (int)rank, name_of(&t->what),
           t->part->timeout_s);
  set_failure(g, text);
  return failure_of(g, env);
}

/* All ranks must have come for the same. */
static tn_status compare_calls(task *t, tn_env *env) {
  group *g = t->part->group;
  const tn_collective *a = &t->what;
  for (int32_t r = 0; r < g->ranks; r++) {
    const tn_collective *b = &g->parts[r].call;
    if (a->what == b->what && a->reduction == b->reduction && a->dtype == b->dtype && a->root == b->root &&
        a->count == b->count)
      continue;
    char text[256];
    snprintf(text, sizeof text, "rank %d came to %s of %lld %s, but rank %d to %s of %lld %s",
             (int)t->part->rank, names[a->what], (long long)a->count, tn_dtype_name(a->dtype), (int)r,
             names[b->what], (long long)b->count, tn_dtype_name(b->dtype));
    set_failure(g, text);
    return failure_of(g, env);
  }
  return TN_OK;
}

static int64_t part_start(int64_t count, int32_t ranks, int32_t rank) {
  return count / ranks * rank + count % ranks * rank / ranks;
}

static void *element(const tn_collective *what, const void *address, int64_t i) {
  return (char *)tn_sim_real(address) + (size_t)i * tn_dtype_size(what->dtype);
}

static void copy_elements(const tn_collective *what, void *to, int64_t at, const void *from, int64_t from_at,
                          int64_t count) {
  size_t size = tn_dtype_size(what->dtype);
  void *end = element(what, to, at), *start = element(what, from, from_at);
  if (end != start && count > 0) memmove(end, start, (size_t)count * size);
}

/* Elements first .. last-1 of all operands, to element `at` of the result. */
static void reduce_part(const task *t, int64_t first, int64_t last, int64_t at) {
  const group *g = t->part->group;
  const tn_collective *w = &t->what;
  const void *from[MOST_RANKS];
  for (int32_t r = 0; r < g->ranks; r++) from[r] = element(w, g->parts[r].call.from, first);
  tn_sim_reduce(w->dtype, w->reduction, g->ranks, from, element(w, w->to, at), last - first);
}

/* What is to be done once all have arrived. */
static void first_half(const task *t) {
  const group *g = t->part->group;
  const tn_collective *w = &t->what;
  int32_t rank = t->part->rank;
  int64_t n = w->count, first = part_start(n, g->ranks, rank), last = part_start(n, g->ranks, rank + 1);
  switch (w->what) {
  case TN_ALL_REDUCE: reduce_part(t, first, last, first); break;
  case TN_REDUCE_SCATTER: reduce_part(t, first, last, 0); break;
  case TN_BROADCAST: copy_elements(w, w->to, 0, g->parts[w->root].call.from, 0, n); break;
  default:
    for (int32_t r = 0; r < g->ranks; r++) copy_elements(w, w->to, r * n, g->parts[r].call.from, 0, n);
  }
}

/* What is to be done once all have done that. */
static void second_half(const task *t) {
  const group *g = t->part->group;
  const tn_collective *w = &t->what;
  for (int32_t r = 0; w->what == TN_ALL_REDUCE && r < g->ranks; r++) {
    int64_t start = part_start(w->count, g->ranks, r), end = part_start(w->count, g->ranks, r + 1);
    if (r != t->part->rank) copy_elements(w, w->to, start, g->parts[r].call.to, start, end - start);
  }
}

static void begin(task *t) {
  t->number = ++t->part->begun;
  t->since = now_s();
  t->part->call = t->what;
  reach(t, ARRIVED);
}

/* Goes on as far as the others allow. */
static tn_status run_task(void *arg, tn_env *env) {
  task *t = arg;
  if (t->stage < ARRIVED) begin(t);
  for (;;) {
    tn_status status = failure_of(t->part->group, env);
    if (status != TN_OK) return status;
    int32_t rank = missing(t);
    if (rank >= 0) return wait_for(t, rank, env);
    if (t->stage == FINISHED) return TN_OK;
    if (t->stage == ARRIVED) {
      status = compare_calls(t, env);
      if (status != TN_OK) return status;
      first_half(t);
    } else {
      second_half(t);
    }
    reach(t, t->stage + 1);
  }
}

/* ---- what the host calls ---- */

static tn_status check_call(const part *p, tn_env *env, const tn_collective *what, int64_t *to_count) {
  int32_t ranks = p->group->ranks;
  bool reduces = what->what == TN_ALL_REDUCE || what->what == TN_REDUCE_SCATTER;
  if (what->what < TN_ALL_REDUCE || what->what > TN_ALL_GATHER)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: there is no collective %d", (int)what->what);
  if (what->count < 0 || (what->what == TN_REDUCE_SCATTER && what->count % ranks != 0))
    return tn_fail(env, TN_EINVAL, NULL, "sim: %s of %lld elements over %d ranks", names[what->what],
                   (long long)what->count, (int)ranks);
  if (reduces && !tn_sim_can_reduce(what->dtype))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: %s of %s", names[what->what],
                   tn_dtype_name(what->dtype));
  if (what->what == TN_BROADCAST && (what->root < 0 || what->root >= ranks))
    return tn_fail(env, TN_EINVAL, NULL, "sim: broadcast from rank %d of %d", (int)what->root, (int)ranks);
  *to_count = what->what == TN_ALL_GATHER       ? what->count * ranks
              : what->what == TN_REDUCE_SCATTER ? what->count / ranks
                                                : what->count;
  return TN_OK;
}

static tn_status communicator_run(void *communicator, tn_env *env, const tn_collective *what, void *stream) {
  part *p = communicator;
  int64_t to_count = 0;
  tn_status status = check_call(p, env, what, &to_count);
  if (status != TN_OK || what->count == 0) return status;
  uint64_t size = tn_dtype_size(what->dtype);
  tn_sim_task work = {.name = name_of(what),
                      .body = run_task,
                      .n_reads = 1,
                      .n_writes = 1,
                      .reads = {{what->from, (uint64_t)what->count * size}},
                      .writes = {{what->to, (uint64_t)to_count * size}}};
  task arg = {.part = p, .what = *what, .stage = -1};
  return tn_sim_push_task(stream, env, &work, &arg, sizeof arg);
}

static tn_status communicator_status(void *communicator, tn_env *env) {
  return failure_of(((part *)communicator)->group, env);
}

static void communicator_abort(void *communicator) {
  part *p = communicator;
  char text[64];
  snprintf(text, sizeof text, "rank %d has given up", (int)p->rank);
  set_failure(p->group, text);
}

/* ---- coming and going ---- */

static tn_status identify(tn_env *env, const void *options, void *bytes) {
  (void)options;
  group *g = tn_new(env, sizeof *g);
  if (g == NULL) return TN_ENOMEM;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  identity id = {g, (uint64_t)getpid()};
  memcpy(bytes, &id, sizeof id);
  return TN_OK;
}

/* The last to leave frees what all have shared. */
static void leave(part *p, tn_env *env) {
  group *g = p->group;
  pthread_mutex_lock(&g->lock);
  p->device = NULL;
  bool last = ++g->left == g->ranks;
  pthread_mutex_unlock(&g->lock);
  if (!last) return;
  pthread_cond_destroy(&g->changed);
  pthread_mutex_destroy(&g->lock);
  tn_delete(env, g);
}

static void communicator_close(void *communicator, tn_env *env) { leave(communicator, env); }

/* "1, 3": who has not come. The lock must be held. */
static void list_missing(const group *g, char *text, size_t size) {
  size_t n = 0;
  text[0] = '\0';
  for (int32_t r = 0; r < g->ranks; r++)
    if (g->parts[r].device == NULL && n < size)
      n += (size_t)snprintf(text + n, size - n, "%s%d", n > 0 ? ", " : "", (int)r);
}

/* Waits until all are here. The lock must be held. */
static void await_all(group *g, double timeout_s) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += (time_t)timeout_s;
  until.tv_nsec += (long)((timeout_s - (double)(time_t)timeout_s) * 1e9);
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  int error = 0;
  while (g->present < g->ranks && !atomic_load(&g->failed) && error != ETIMEDOUT)
    error = pthread_cond_timedwait(&g->changed, &g->lock, &until);
  if (g->present == g->ranks || atomic_load(&g->failed)) return;
  char who[64];
  list_missing(g, who, sizeof who);
  snprintf(g->text, sizeof g->text, "of %d ranks, %s did not come within %g s", (int)g->ranks, who,
           timeout_s);
  atomic_store(&g->failed, true);
}

static tn_status communicator_open(tn_env *env, const void *options, void *device, int32_t rank,
                                   int32_t ranks, const void *bytes, double timeout_s, void **communicator) {
  identity id;
  (void)options;
  *communicator = NULL;
  memcpy(&id, bytes, sizeof id);
  if (id.process != (uint64_t)getpid())
    return tn_fail(env, TN_ECOMM, NULL, "sim: the identity was made by another process, %llu",
                   (unsigned long long)id.process);
  if (rank < 0 || rank >= ranks || ranks > MOST_RANKS)
    return tn_fail(env, TN_EINVAL, NULL, "sim: rank %d of %d, expected one of at most %d", (int)rank,
                   (int)ranks, MOST_RANKS);
  group *g = id.group;
  part *p = &g->parts[rank];
  pthread_mutex_lock(&g->lock);
  g->ranks = ranks;
  p->group = g;
  p->rank = rank;
  p->timeout_s = timeout_s;
  p->device = device;
  g->present++;
  pthread_cond_broadcast(&g->changed);
  await_all(g, timeout_s);
  if (atomic_load(&g->failed)) wake_all(g);
  pthread_mutex_unlock(&g->lock);
  tn_status status = failure_of(g, env);
  if (status == TN_OK)
    *communicator = p;
  else
    leave(p, env);
  return status;
}

const tn_communicator tn_sim_communicator = {
    .item = TN_ITEM_PLAIN(tn_communicator, TN_COMMUNICATOR, "sim", "collectives between simulated devices"),
    .families = "sim",
    .identity_bytes = sizeof(identity),
    .identify = identify,
    .open = communicator_open,
    .close = communicator_close,
    .run = communicator_run,
    .status = communicator_status,
    .abort = communicator_abort,
};
