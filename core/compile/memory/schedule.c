/* core/compile/memory/schedule.c: pass `schedule`: the order in which groups are launched.
 *
 * List scheduling. Among the ready groups, one that frees at least as much memory as it takes goes first,
 * since it can only lower the live bytes, and of several the one that frees most; otherwise the order of the
 * graph decides. Collectives and offloads begin as soon as they are ready. A group that is all that a
 * collective still waits for, such as the cast of a bucket of gradients, comes next. The readers of their
 * results run when no other group is ready; those of a reduce_scatter already when it is predicted to have
 * ended, since what they make is gathered by the next collective, which should overlap as well. Groups that
 * are placed on the host come last, those first whose operands are there first: the device has all of its
 * work by then, and the host computes beside it. */
#include "core/compile/memory/schedule_graph.h"

/* ---- heaps of groups by key ---- */

static bool has_smaller_key(const tn_schedule *s, int32_t a, int32_t b) {
  int64_t key_a = s->plan->key.v[a], key_b = s->plan->key.v[b];
  return key_a != key_b ? key_a < key_b : a < b;
}

static void group_heap_push(const tn_schedule *s, int32_t *heap, int32_t *n, int32_t group) {
  int32_t at = (*n)++;
  while (at > 0 && has_smaller_key(s, group, heap[(at - 1) / 2])) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = group;
}

static int32_t group_heap_pop(const tn_schedule *s, int32_t *heap, int32_t *n) {
  int32_t top = heap[0], last = heap[--*n], at = 0;
  for (;;) {
    int32_t child = 2 * at + 1;
    if (child >= *n) break;
    if (child + 1 < *n && has_smaller_key(s, heap[child + 1], heap[child])) child++;
    if (!has_smaller_key(s, heap[child], last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return top;
}

/* ---- the heap of groups that free memory ---- */

/* The group with the larger difference of freed and taken bytes goes first. */
static bool frees_more(const tn_schedule *s, const tn_freeing_group *a, const tn_freeing_group *b) {
  return a->net != b->net ? a->net > b->net : has_smaller_key(s, a->group, b->group);
}

static tn_status freeing_heap_push(tn_schedule *s, tn_freeing_group entry) {
  TN_TRY(tn_vec_push(s->plan->env, &s->freeing, entry));
  tn_freeing_group *heap = s->freeing.v;
  size_t at = s->freeing.n - 1;
  while (at > 0 && frees_more(s, &entry, &heap[(at - 1) / 2])) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = entry;
  return TN_OK;
}

static tn_freeing_group freeing_heap_pop(tn_schedule *s) {
  tn_freeing_group *heap = s->freeing.v, top = heap[0], last = heap[--s->freeing.n];
  size_t at = 0, n = s->freeing.n;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= n) break;
    if (child + 1 < n && frees_more(s, &heap[child + 1], &heap[child])) child++;
    if (!frees_more(s, &heap[child], &last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return top;
}

/* ---- scheduling ---- */

static int64_t group_taken_bytes(const tn_schedule *s, int32_t group) {
  int64_t bytes = 0;
  for (int32_t k = s->writes.start[group]; k < s->writes.start[group + 1]; k++)
    if (!s->live[s->writes.to[k]]) bytes += s->plan->buffers.v[s->writes.to[k]].bytes;
  return bytes;
}

static int64_t group_net_bytes(const tn_schedule *s, int32_t group) {
  return s->gain[group] - group_taken_bytes(s, group);
}

static tn_status list_freeing_group(tn_schedule *s, int32_t group) {
  s->listed[group] = true;
  return freeing_heap_push(s, (tn_freeing_group){group_net_bytes(s, group), group});
}

static bool is_group_ready(const tn_schedule *s, int32_t group) {
  return !s->done[group] && s->hard_left[group] == 0 && s->soft_left[group] == 0;
}

/* Groups that fall back keep the order of the graph, so that they need few cuts. */
static tn_status note_freeing_group(tn_schedule *s, int32_t group) {
  if (s->plan->cover->groups.v[group].fallback != NULL) return TN_OK;
  if (!is_group_ready(s, group) || s->waits[group] || group_net_bytes(s, group) < 0) return TN_OK;
  return list_freeing_group(s, group);
}

/* The launching thread runs it, and enqueues nothing meanwhile. */
static bool is_on_host(const tn_schedule *s, int32_t group) {
  const tn_group *g = &s->plan->cover->groups.v[group];
  return g->placed && g->fallback != NULL;
}

static tn_status add_to_group_heap(tn_schedule *s, int32_t group) {
  if (s->soft_left[group] > 0) {
    group_heap_push(s, s->blocked, &s->n_blocked, group);
    return TN_OK;
  }
  if (is_on_host(s, group))
    s->placed[s->n_placed++] = group;
  else if (s->waits[group])
    group_heap_push(s, s->late, &s->n_late, group);
  else
    group_heap_push(s, s->ready, &s->n_ready, group);
  return note_freeing_group(s, group);
}

/* A reader has run. If one reader is left, running it would free the buffer. */
static tn_status count_down_readers(tn_schedule *s, int32_t root) {
  if (--s->readers_left[root] != 1) return TN_OK;
  for (int32_t k = s->readers.start[root]; k < s->readers.start[root + 1]; k++) {
    int32_t group = s->readers.to[k];
    if (s->done[group]) continue;
    s->gain[group] += s->plan->buffers.v[root].bytes;
    return note_freeing_group(s, group);
  }
  return TN_OK;
}

/* A group has written to a buffer, which its other writers no longer take. */
static tn_status note_written(tn_schedule *s, int32_t root) {
  if (s->live[root]) return TN_OK;
  s->live[root] = true;
  for (int32_t k = s->writers.start[root]; k < s->writers.start[root + 1]; k++) {
    int32_t group = s->writers.to[k];
    if (s->listed[group] && !s->done[group]) TN_TRY(list_freeing_group(s, group));
  }
  return TN_OK;
}

/* Collectives run one after another, beside the other groups. */
static void predict_times(tn_schedule *s, int32_t group) {
  const tn_group *g = &s->plan->cover->groups.v[group];
  bool collective = g->role == TN_STREAM_COMM;
  if (g->role != TN_STREAM_COMPUTE && !collective) return; /* place_transfers predicts copies */
  double *stream = collective ? &s->comm_s : &s->compute_s;
  double awaited = collective ? s->compute_s : s->result_s[group];
  *stream = (*stream > awaited ? *stream : awaited) + g->choice.cost_s;
  for (int32_t k = s->hard.start[group]; collective && k < s->hard.start[group + 1]; k++)
    s->result_s[s->hard.to[k]] = s->comm_s; /* of its collectives the last one decides */
}

static tn_status schedule_group(tn_schedule *s, int32_t group) {
  s->done[group] = true;
  predict_times(s, group);
  s->position[group] = (int32_t)s->plan->order.n;
  TN_TRY(tn_vec_push(s->plan->env, &s->plan->order, group));
  for (int32_t k = s->writes.start[group]; k < s->writes.start[group + 1]; k++)
    TN_TRY(note_written(s, s->writes.to[k]));
  for (int32_t k = s->reads.start[group]; k < s->reads.start[group + 1]; k++)
    TN_TRY(count_down_readers(s, s->reads.to[k]));
  for (int32_t k = s->hard.start[group]; k < s->hard.start[group + 1]; k++)
    if (--s->hard_left[s->hard.to[k]] == 0) TN_TRY(add_to_group_heap(s, s->hard.to[k]));
  for (int32_t k = s->soft.start[group]; k < s->soft.start[group + 1]; k++) {
    int32_t next = s->soft.to[k];
    if (--s->soft_left[next] == 0 && s->hard_left[next] == 0 && !s->done[next])
      TN_TRY(add_to_group_heap(s, next));
  }
  return TN_OK;
}

/* The group with the largest difference of freed and taken bytes. */
static int32_t pop_freeing_group(tn_schedule *s) {
  while (s->freeing.n > 0) {
    tn_freeing_group top = freeing_heap_pop(s);
    if (!s->done[top.group] && top.net == group_net_bytes(s, top.group)) return top.group;
  }
  return -1;
}

static int32_t pop_group(tn_schedule *s, int32_t *heap, int32_t *n) {
  while (*n > 0) {
    int32_t group = group_heap_pop(s, heap, n);
    if (!s->done[group]) return group;
  }
  return -1;
}

/* After a group that falls back, another one needs no cut of its own. */
static int32_t pop_fallback_group(const tn_schedule *s) {
  const tn_group *groups = s->plan->cover->groups.v;
  const int32_t *order = s->plan->order.v;
  int32_t best = -1;
  if (s->plan->order.n == 0 || groups[order[s->plan->order.n - 1]].fallback == NULL) return -1;
  for (int32_t i = 0; i < s->n_ready; i++) {
    int32_t group = s->ready[i];
    if (s->done[group] || groups[group].fallback == NULL) continue;
    if (best < 0 || has_smaller_key(s, group, best)) best = group;
  }
  return best;
}

/* It runs on its own stream: the earlier it starts, the more groups run concurrently. */
static bool starts_early(const tn_group *g) {
  return g->role == TN_STREAM_COMM || g->role == TN_STREAM_COPY_OUT;
}

static int32_t pop_concurrent_group(const tn_schedule *s) {
  const tn_group *groups = s->plan->cover->groups.v;
  int32_t best = -1;
  for (int32_t i = 0; s->has_concurrent && i < s->n_ready; i++) {
    int32_t group = s->ready[i];
    if (s->done[group] || !starts_early(&groups[group])) continue;
    if (best < 0 || has_smaller_key(s, group, best)) best = group;
  }
  return best;
}

static bool is_pointwise_group(const tn_schedule *s, int32_t group) {
  const tn_graph *graph = s->plan->cover->graph;
  uint32_t lead = tn_group_lead(&s->plan->cover->groups.v[group], graph);
  return graph->nodes.v[lead].op->op_class == TN_CLASS_POINTWISE;
}

/* Whether only this group is missing for a collective, or for a pointwise group, such as a cast, that is all
 * that is missing for one. */
static bool is_last_before_collective(const tn_schedule *s, int32_t group, int32_t between) {
  for (int32_t k = s->hard.start[group]; k < s->hard.start[group + 1]; k++) {
    int32_t next = s->hard.to[k];
    if (s->hard_left[next] != 1 || s->soft_left[next] != 0) continue;
    if (s->plan->cover->groups.v[next].role == TN_STREAM_COMM) return true;
    if (between > 0 && is_pointwise_group(s, next) && is_last_before_collective(s, next, between - 1))
      return true;
  }
  return false;
}

/* A collective could begin if this group had run. Groups that fall back keep their order. */
static int32_t pop_awaited_group(const tn_schedule *s) {
  int32_t best = -1;
  for (int32_t i = 0; s->has_collectives && i < s->n_ready; i++) {
    int32_t group = s->ready[i];
    if (s->done[group] || s->plan->cover->groups.v[group].fallback != NULL) continue;
    if (is_last_before_collective(s, group, 1) && (best < 0 || has_smaller_key(s, group, best))) best = group;
  }
  return best;
}

/* Its entry in the heap is skipped later. */
static int32_t pop_early_group(const tn_schedule *s) {
  int32_t best = -1;
  for (int32_t i = 0; i < s->n_late; i++) {
    int32_t group = s->late[i];
    if (s->done[group] || !s->early[group] || s->result_s[group] > s->compute_s) continue;
    if (best < 0 || has_smaller_key(s, group, best)) best = group;
  }
  return best;
}

static int32_t next_scheduled_group(tn_schedule *s) {
  int32_t group = pop_concurrent_group(s);
  if (group < 0) group = tn_schedule_next_drain(s);
  if (group < 0) group = pop_awaited_group(s);
  if (group < 0) group = pop_early_group(s);
  if (group < 0) group = pop_fallback_group(s);
  if (group < 0) group = pop_freeing_group(s);
  if (group < 0) group = pop_group(s, s->ready, &s->n_ready);
  if (group < 0) group = pop_group(s, s->late, &s->n_late);
  if (group < 0) group = tn_schedule_pop_placed(s);
  return group >= 0 ? group : pop_group(s, s->blocked, &s->n_blocked);
}

/* A buffer with one reader dies when that group runs. */
static void start_gains(tn_schedule *s) {
  for (size_t b = 0; b < s->plan->buffers.n; b++)
    if (s->readers_left[b] == 1) s->gain[s->readers.to[s->readers.start[b]]] += s->plan->buffers.v[b].bytes;
}

static tn_status schedule_all(tn_schedule *s) {
  start_gains(s);
  for (int32_t i = 0; i < s->n; i++) {
    s->has_collectives |= s->plan->cover->groups.v[i].role == TN_STREAM_COMM;
    s->has_concurrent |= starts_early(&s->plan->cover->groups.v[i]);
    if (s->hard_left[i] == 0) TN_TRY(add_to_group_heap(s, i));
  }
  for (int32_t i = 0; i < s->n; i++) {
    int32_t group = next_scheduled_group(s);
    if (group < 0)
      return tn_failf(s->plan->env, TN_EINTERNAL, "groups of the cover depend on each other in a cycle");
    TN_TRY(schedule_group(s, group));
  }
  return TN_OK;
}

tn_status tn_plan_schedule(tn_plan *plan) {
  tn_schedule s = {.plan = plan, .arena = tn_arena_new(plan->env), .n = (int32_t)plan->cover->groups.n};
  tn_status status = tn_schedule_prepare(&s);
  if (status == TN_OK) status = schedule_all(&s);
  tn_vec_free(plan->env, &s.edges);
  tn_vec_free(plan->env, &s.freeing);
  tn_arena_free(&s.arena);
  return status;
}
