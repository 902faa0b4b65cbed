/* backends/sim/communicator/collective.c: collectives as tasks on the ranks' streams (task.h). Engines never
 * block on each other: the task of a rank records its arrival and returns TN_SIM_PENDING until all ranks have
 * arrived. An all_reduce is that of Rabenseifner (ICCS 2004): each rank reduces its part of all operands into
 * its result (reduce-scatter), copies the other parts from the ranks that have reduced them (all-gather), and
 * ends when no rank reads its memory any more. One rank reduces each element, in the order of ranks, so
 * results have the same bits on all ranks and in every run. */
#include <stdio.h>
#include <string.h>

#include "backends/sim/communicator/group.h"
#include "backends/shared/clock.h"
#include "backends/shared/reduce.h"

typedef struct collective_task {
  tn_sim_part *part;
  tn_collective call;
  int32_t stage; /* the last stage that this rank has reached; -1: not arrived */
  bool captured; /* it runs in replays */
  uint64_t number;
  double since;
  double *rehearsed_s; /* the time of the stream in a rehearsal; NULL: the collective takes place */
} collective_task;

static const char *collective_title(const tn_collective *call) {
  return call->name != NULL ? call->name : tn_collective_name(call->kind);
}

static void collective_reach(collective_task *t, int32_t stage) {
  tn_sim_group *g = t->part->group;
  t->stage = stage;
  atomic_store(&t->part->reached[stage], t->number);
  pthread_mutex_lock(&g->lock);
  tn_sim_group_wake(g);
  pthread_mutex_unlock(&g->lock);
}

/* The first rank that has not reached the task's stage; -1: all have. */
static int32_t collective_missing_rank(const collective_task *t) {
  const tn_sim_group *g = t->part->group;
  for (int32_t r = 0; r < g->ranks; r++)
    if (atomic_load(&g->parts[r].reached[t->stage]) < t->number) return r;
  return -1;
}

/* The end of a collective that has failed, or TN_SIM_PENDING. */
static tn_status collective_failed(tn_env *env, const collective_task *t) {
  tn_sim_group *g = t->part->group;
  if (!t->part->silent) return tn_sim_group_status(env, g);
  return atomic_load(&g->aborted) ? TN_OK : TN_SIM_PENDING;
}

static tn_status collective_wait_for(tn_env *env, collective_task *t, int32_t rank) {
  tn_sim_group *g = t->part->group;
  char text[256];
  if (tn_monotonic_s() - t->since < t->part->timeout_s) return TN_SIM_PENDING;
  snprintf(text, sizeof text, "rank %d did not come to '%s' within %g s", (int)rank,
           collective_title(&t->call), t->part->timeout_s);
  tn_sim_group_fail(g, text);
  return collective_failed(env, t);
}

/* As in NCCL, all ranks capture a collective, or none does. */
static tn_status collective_compare_captures(tn_env *env, const collective_task *t) {
  tn_sim_group *g = t->part->group;
  for (int32_t r = 0; r < g->ranks; r++) {
    if (g->parts[r].replayed == t->captured) continue;
    char text[256];
    snprintf(
        text, sizeof text,
        "rank %d came to '%s' in a replay, but rank %d outside of one; all ranks capture a collective, or "
        "none",
        (int)(t->captured ? t->part->rank : r), collective_title(&t->call),
        (int)(t->captured ? r : t->part->rank));
    tn_sim_group_fail(g, text);
    return collective_failed(env, t);
  }
  return TN_OK;
}

/* All ranks must have called the same collective. */
static tn_status collective_compare_calls(tn_env *env, const collective_task *t) {
  tn_sim_group *g = t->part->group;
  const tn_collective *a = &t->call;
  for (int32_t r = 0; r < g->ranks; r++) {
    const tn_collective *b = &g->parts[r].call;
    if (a->kind == b->kind && a->reduction == b->reduction && a->dtype == b->dtype && a->root == b->root &&
        a->count == b->count)
      continue;
    char text[256];
    snprintf(text, sizeof text, "rank %d came to %s of %lld %s, but rank %d to %s of %lld %s",
             (int)t->part->rank, tn_collective_name(a->kind), (long long)a->count, tn_dtype_name(a->dtype),
             (int)r, tn_collective_name(b->kind), (long long)b->count, tn_dtype_name(b->dtype));
    tn_sim_group_fail(g, text);
    return collective_failed(env, t);
  }
  return collective_compare_captures(env, t);
}

static int64_t collective_part_start(int64_t count, int32_t ranks, int32_t rank) {
  return count / ranks * rank + count % ranks * rank / ranks;
}

static void *collective_element(const tn_collective *call, const void *address, int64_t i) {
  return (char *)tn_sim_real(address) + (size_t)i * tn_dtype_size(call->dtype);
}

static void collective_copy(const tn_collective *call, void *to, int64_t at, const void *from,
                            int64_t from_at, int64_t count) {
  size_t size = tn_dtype_size(call->dtype);
  void *end = collective_element(call, to, at), *start = collective_element(call, from, from_at);
  if (end != start && count > 0) memmove(end, start, (size_t)count * size);
}

/* Elements first .. last-1 of all operands, to element `at` of the result. */
static void collective_reduce_part(const collective_task *t, int64_t first, int64_t last, int64_t at) {
  const tn_sim_group *g = t->part->group;
  const tn_collective *w = &t->call;
  const void *from[TN_SIM_RANKS];
  for (int32_t r = 0; r < g->ranks; r++) from[r] = collective_element(w, g->parts[r].call.from, first);
  tn_reduce(w->dtype, w->reduction, g->ranks, from, collective_element(w, w->to, at), last - first);
}

/* The part that starts when all ranks have arrived. */
static void collective_first_half(const collective_task *t) {
  const tn_sim_group *g = t->part->group;
  const tn_collective *w = &t->call;
  int32_t rank = t->part->rank;
  int64_t n = w->count, first = collective_part_start(n, g->ranks, rank),
          last = collective_part_start(n, g->ranks, rank + 1);
  switch (w->kind) {
  case TN_ALL_REDUCE: collective_reduce_part(t, first, last, first); break;
  case TN_REDUCE_SCATTER: collective_reduce_part(t, first, last, 0); break;
  case TN_BROADCAST: collective_copy(w, w->to, 0, g->parts[w->root].call.from, 0, n); break;
  default:
    for (int32_t r = 0; r < g->ranks; r++) collective_copy(w, w->to, r * n, g->parts[r].call.from, 0, n);
  }
}

/* The part that starts when all ranks have done the first. */
static void collective_second_half(const collective_task *t) {
  const tn_sim_group *g = t->part->group;
  const tn_collective *w = &t->call;
  for (int32_t r = 0; w->kind == TN_ALL_REDUCE && r < g->ranks; r++) {
    int64_t start = collective_part_start(w->count, g->ranks, r),
            end = collective_part_start(w->count, g->ranks, r + 1);
    if (r != t->part->rank) collective_copy(w, w->to, start, g->parts[r].call.to, start, end - start);
  }
}

static void collective_begin(collective_task *t) {
  t->number = ++t->part->begun;
  t->since = tn_monotonic_s();
  t->part->call = t->call;
  t->part->replayed = t->captured;
  pthread_mutex_lock(&t->part->group->lock);
  snprintf(t->part->name, sizeof t->part->name, "%s", collective_title(&t->call));
  pthread_mutex_unlock(&t->part->group->lock);
  if (t->rehearsed_s != NULL) t->part->arrived_s = *t->rehearsed_s;
  collective_reach(t, TN_SIM_ARRIVED);
}

/* It begins when the last rank has come. */
static void collective_rehearse(const collective_task *t) {
  const tn_sim_group *g = t->part->group;
  double begin = 0;
  for (int32_t r = 0; r < g->ranks; r++)
    if (g->parts[r].arrived_s > begin) begin = g->parts[r].arrived_s;
  *t->rehearsed_s = begin + t->call.cost_s;
}

/* Runs all stages that the other ranks allow. */
static tn_status collective_run(tn_env *env, void *arg) {
  collective_task *t = arg;
  if (t->stage < TN_SIM_ARRIVED) collective_begin(t);
  for (;;) {
    if (atomic_load(&t->part->group->failed)) return collective_failed(env, t);
    int32_t rank = collective_missing_rank(t);
    if (rank >= 0) return collective_wait_for(env, t, rank);
    if (t->stage == TN_SIM_FINISHED) return TN_OK;
    if (t->stage == TN_SIM_ARRIVED) {
      TN_TRY(collective_compare_calls(env, t));
      (t->rehearsed_s != NULL ? collective_rehearse : collective_first_half)(t);
    } else if (t->rehearsed_s == NULL) {
      collective_second_half(t);
    }
    collective_reach(t, t->stage + 1);
  }
}

tn_status tn_sim_collective_push(tn_env *env, tn_sim_part *p, const tn_collective *call, int64_t to_count,
                                 const tn_sim_native *native) {
  uint64_t size = tn_dtype_size(call->dtype);
  tn_sim_task work = {.name = collective_title(call),
                      .body = collective_run,
                      .n_reads = 1,
                      .n_writes = 1,
                      .reads = {{call->from, (uint64_t)call->count * size}},
                      .writes = {{call->to, (uint64_t)to_count * size}}};
  tn_sim_stream *stream = native->stream;
  collective_task arg = {
      .part = p, .call = *call, .stage = -1, .captured = stream->device->capturing != NULL};
  if (tn_sim_rehearses(stream->device)) arg.rehearsed_s = &stream->ring.now_s;
  return native->push_task(env, native->stream, &work, &arg, sizeof arg);
}
