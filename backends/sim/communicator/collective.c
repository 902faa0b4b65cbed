/* backends/sim/communicator/collective.c: collectives as tasks on the ranks' streams (task.h). Engines never
 * wait for each other: the task of a rank says that it has come here, and then answers TN_SIM_PENDING until
 * all ranks have. An all_reduce has three stages, as in the algorithm of Rabenseifner (ICCS 2004): each rank
 * reduces its own part of all operands into its result, then fetches the other parts from the ranks that made
 * them, and it ends when nobody reads its memory any more. So every element is reduced by one rank only, in
 * the order of the ranks, and results are the same bits everywhere and every time. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backends/sim/communicator/group.h"
#include "backends/sim/communicator/reduce.h"

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct task {
  tn_sim_part *part;
  tn_collective what;
  int32_t stage; /* that this rank has reached; -1: none */
  uint64_t number;
  double since;
} task;

static const char *const names[] = {[TN_ALL_REDUCE] = "all_reduce",
                                    [TN_BROADCAST] = "broadcast",
                                    [TN_REDUCE_SCATTER] = "reduce_scatter",
                                    [TN_ALL_GATHER] = "all_gather"};

const char *tn_sim_collective_name(int32_t what) { return names[what]; }

static const char *name_of(const tn_collective *what) {
  return what->name != NULL ? what->name : names[what->kind];
}

static void reach(task *t, int32_t stage) {
  tn_sim_group *g = t->part->group;
  t->stage = stage;
  atomic_store(&t->part->reached[stage], t->number);
  pthread_mutex_lock(&g->lock);
  tn_sim_group_wake(g);
  pthread_mutex_unlock(&g->lock);
}

/* The first rank that is not there yet; -1: all are. */
static int32_t missing(const task *t) {
  const tn_sim_group *g = t->part->group;
  for (int32_t r = 0; r < g->ranks; r++)
    if (atomic_load(&g->parts[r].reached[t->stage]) < t->number) return r;
  return -1;
}

static tn_status wait_for(task *t, int32_t rank, tn_env *env) {
  tn_sim_group *g = t->part->group;
  char text[256];
  if (now_s() - t->since < t->part->timeout_s) return TN_SIM_PENDING;
  snprintf(text, sizeof text, "rank %d did not come to '%s' within %g s", (int)rank, name_of(&t->what),
           t->part->timeout_s);
  tn_sim_group_fail(g, text);
  return tn_sim_group_status(g, env);
}

/* All ranks must have come for the same. */
static tn_status compare_calls(task *t, tn_env *env) {
  tn_sim_group *g = t->part->group;
  const tn_collective *a = &t->what;
  for (int32_t r = 0; r < g->ranks; r++) {
    const tn_collective *b = &g->parts[r].call;
    if (a->kind == b->kind && a->reduction == b->reduction && a->dtype == b->dtype && a->root == b->root &&
        a->count == b->count)
      continue;
    char text[256];
    snprintf(text, sizeof text, "rank %d came to %s of %lld %s, but rank %d to %s of %lld %s",
             (int)t->part->rank, names[a->kind], (long long)a->count, tn_dtype_name(a->dtype), (int)r,
             names[b->kind], (long long)b->count, tn_dtype_name(b->dtype));
    tn_sim_group_fail(g, text);
    return tn_sim_group_status(g, env);
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
  const tn_sim_group *g = t->part->group;
  const tn_collective *w = &t->what;
  const void *from[TN_SIM_RANKS];
  for (int32_t r = 0; r < g->ranks; r++) from[r] = element(w, g->parts[r].call.from, first);
  tn_sim_reduce(w->dtype, w->reduction, g->ranks, from, element(w, w->to, at), last - first);
}

/* What is to be done once all have arrived. */
static void first_half(const task *t) {
  const tn_sim_group *g = t->part->group;
  const tn_collective *w = &t->what;
  int32_t rank = t->part->rank;
  int64_t n = w->count, first = part_start(n, g->ranks, rank), last = part_start(n, g->ranks, rank + 1);
  switch (w->kind) {
  case TN_ALL_REDUCE: reduce_part(t, first, last, first); break;
  case TN_REDUCE_SCATTER: reduce_part(t, first, last, 0); break;
  case TN_BROADCAST: copy_elements(w, w->to, 0, g->parts[w->root].call.from, 0, n); break;
  default:
    for (int32_t r = 0; r < g->ranks; r++) copy_elements(w, w->to, r * n, g->parts[r].call.from, 0, n);
  }
}

/* What is to be done once all have done that. */
static void second_half(const task *t) {
  const tn_sim_group *g = t->part->group;
  const tn_collective *w = &t->what;
  for (int32_t r = 0; w->kind == TN_ALL_REDUCE && r < g->ranks; r++) {
    int64_t start = part_start(w->count, g->ranks, r), end = part_start(w->count, g->ranks, r + 1);
    if (r != t->part->rank) copy_elements(w, w->to, start, g->parts[r].call.to, start, end - start);
  }
}

static void begin(task *t) {
  t->number = ++t->part->begun;
  t->since = now_s();
  t->part->call = t->what;
  reach(t, TN_SIM_ARRIVED);
}

/* Goes on as far as the others allow. */
static tn_status run_task(tn_env *env, void *arg) {
  task *t = arg;
  if (t->stage < TN_SIM_ARRIVED) begin(t);
  for (;;) {
    tn_status status = tn_sim_group_status(t->part->group, env);
    if (status != TN_OK) return status;
    int32_t rank = missing(t);
    if (rank >= 0) return wait_for(t, rank, env);
    if (t->stage == TN_SIM_FINISHED) return TN_OK;
    if (t->stage == TN_SIM_ARRIVED) {
      status = compare_calls(t, env);
      if (status != TN_OK) return status;
      first_half(t);
    } else {
      second_half(t);
    }
    reach(t, t->stage + 1);
  }
}

tn_status tn_sim_collective_push(tn_sim_part *p, tn_env *env, const tn_collective *what, int64_t to_count,
                                 void *stream) {
  uint64_t size = tn_dtype_size(what->dtype);
  tn_sim_task work = {.name = name_of(what),
                      .body = run_task,
                      .n_reads = 1,
                      .n_writes = 1,
                      .reads = {{what->from, (uint64_t)what->count * size}},
                      .writes = {{what->to, (uint64_t)to_count * size}}};
  task arg = {.part = p, .what = *what, .stage = -1};
  return tn_sim_push_task(env, stream, &work, &arg, sizeof arg);
}
