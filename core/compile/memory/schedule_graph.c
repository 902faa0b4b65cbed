/* core/compile/memory/schedule_graph.c: the dependences between groups.
 *
 * Hard edges lead from the groups that write a buffer to those that read it. Soft edges lead from the readers
 * of a state's old value to the group that writes the new one, so that the commit can be in place, and to a
 * rematerialized group from the group after which it should run. The schedule ignores a soft edge only if
 * hard edges contradict it. */
#include "core/compile/memory/schedule_graph.h"

#include "core/compile/kernels/collective_kernel.h"
#include "tenon/plugin/communicator.h"

/* ---- edges ---- */

static tn_status add_schedule_edge(tn_schedule *s, int32_t from, int32_t to) {
  tn_group_edge e = {from, to};
  return tn_vec_push(s->plan->env, &s->edges, e);
}

static tn_status add_group_edge(tn_schedule *s, int32_t from, int32_t to) {
  return from == to ? TN_OK : add_schedule_edge(s, from, to);
}

/* Makes adjacency lists of the collected edges (counting sort) and clears the edges. */
static tn_status make_adjacency(tn_schedule *s, int32_t n_from, tn_adjacency *rows) {
  rows->start = tn_arena_alloc(&s->arena, ((size_t)n_from + 2) * sizeof *rows->start);
  rows->to = tn_arena_alloc(&s->arena, s->edges.n * sizeof *rows->to);
  if (rows->start == NULL || rows->to == NULL) return TN_ENOMEM;
  int32_t *fill = rows->start + 1;
  for (size_t i = 0; i < s->edges.n; i++) fill[s->edges.v[i].from + 1]++;
  for (int32_t i = 0; i < n_from; i++) fill[i + 1] += fill[i];
  for (size_t i = 0; i < s->edges.n; i++) rows->to[fill[s->edges.v[i].from]++] = s->edges.v[i].to;
  s->edges.n = 0;
  return TN_OK;
}

/* Edges from the writer of a buffer, or from the writers of its parts. */
static tn_status edges_from_writers(tn_schedule *s, int32_t buffer, int32_t to) {
  const tn_buffer *b = &s->plan->buffers.v[buffer];
  if (b->writer >= 0) TN_TRY(add_group_edge(s, b->writer, to));
  for (int32_t p = b->first_part; p >= 0; p = s->plan->buffers.v[p].next_part)
    TN_TRY(add_group_edge(s, s->plan->buffers.v[p].writer, to));
  return TN_OK;
}

static tn_status collect_hard_edges(tn_schedule *s) {
  for (int32_t i = 0; i < s->n; i++) {
    const tn_group *g = &s->plan->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in; k++)
      if (g->in[k] != 0) TN_TRY(edges_from_writers(s, s->plan->buffer_of.v[g->in[k]], i));
  }
  for (size_t i = 0; i < s->plan->edges.n; i++)
    TN_TRY(add_group_edge(s, s->plan->edges.v[i].from, s->plan->edges.v[i].to));
  return make_adjacency(s, s->n, &s->hard);
}

static tn_status edges_to_writers(tn_schedule *s, int32_t reader, int32_t buffer) {
  const tn_buffer *b = &s->plan->buffers.v[buffer];
  if (b->writer >= 0) TN_TRY(add_group_edge(s, reader, b->writer));
  for (int32_t p = b->first_part; p >= 0; p = s->plan->buffers.v[p].next_part)
    TN_TRY(add_group_edge(s, reader, s->plan->buffers.v[p].writer));
  return TN_OK;
}

/* A group that reads a state should run before a commit overwrites the state. */
static tn_status edges_to_commits(tn_schedule *s, int32_t reader, const tn_buffer *read) {
  for (int32_t i = 0; i < s->n_committed; i++) {
    const tn_plan_commit *c = &s->plan->commits.v[s->plan->buffers.v[s->committed[i]].commit];
    if (tn_buffer_overlaps(s->plan, read, &c->location, c->bytes))
      TN_TRY(edges_to_writers(s, reader, s->committed[i]));
  }
  return TN_OK;
}

static tn_status list_committed_buffers(tn_schedule *s) {
  s->committed = tn_arena_alloc(&s->arena, s->plan->commits.n * sizeof *s->committed);
  if (s->committed == NULL) return TN_ENOMEM;
  for (size_t b = 0; b < s->plan->buffers.n; b++)
    if (s->plan->buffers.v[b].commit >= 0) s->committed[s->n_committed++] = (int32_t)b;
  return TN_OK;
}

static tn_status collect_soft_edges(tn_schedule *s) {
  TN_TRY(list_committed_buffers(s));
  for (int32_t i = 0; i < s->n; i++) {
    const tn_group *g = &s->plan->cover->groups.v[i];
    if (g->after > 0) TN_TRY(add_group_edge(s, g->after - 1, i));
    for (int32_t k = 0; k < g->n_in && s->plan->commits.n > 0; k++) {
      const tn_buffer *b = g->in[k] == 0 ? NULL : &s->plan->buffers.v[s->plan->buffer_of.v[g->in[k]]];
      if (b != NULL && b->fixed && b->location.base == TN_BASE_REGION) TN_TRY(edges_to_commits(s, i, b));
    }
  }
  return make_adjacency(s, s->n, &s->soft);
}

/* ---- memory ---- */

/* The root of a value's buffer if it is in the arena; -1 if it has a fixed location. */
static int32_t value_arena_root(const tn_schedule *s, tn_val value) {
  int64_t offset;
  if (value == 0) return -1;
  int32_t root = tn_plan_root(s->plan, s->plan->buffer_of.v[value], &offset);
  const tn_buffer *b = &s->plan->buffers.v[root];
  return b->fixed || b->commit >= 0 ? -1 : root;
}

/* Edges group -> root, each pair once: `seen[root]` is the last group that has an edge to it. */
static tn_status collect_group_roots(tn_schedule *s, bool results, int32_t *seen, tn_adjacency *rows) {
  for (size_t b = 0; b < s->plan->buffers.n; b++) seen[b] = -1;
  for (int32_t i = 0; i < s->n; i++) {
    const tn_group *g = &s->plan->cover->groups.v[i];
    for (int32_t k = 0; k < (results ? g->n_out : g->n_in); k++) {
      int32_t root = value_arena_root(s, results ? g->out[k] : g->in[k]);
      if (root < 0 || seen[root] == i) continue;
      seen[root] = i;
      TN_TRY(add_schedule_edge(s, i, root));
    }
  }
  return make_adjacency(s, s->n, rows);
}

static tn_status collect_root_readers(tn_schedule *s) {
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t k = s->reads.start[i]; k < s->reads.start[i + 1]; k++) {
      TN_TRY(add_schedule_edge(s, s->reads.to[k], i));
      s->readers_left[s->reads.to[k]]++;
    }
  return make_adjacency(s, (int32_t)s->plan->buffers.n, &s->readers);
}

static tn_status collect_root_writers(tn_schedule *s) {
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t k = s->writes.start[i]; k < s->writes.start[i + 1]; k++)
      TN_TRY(add_schedule_edge(s, s->writes.to[k], i));
  return make_adjacency(s, (int32_t)s->plan->buffers.n, &s->writers);
}

static bool is_collective_group(const tn_schedule *s, int32_t group) {
  return s->plan->cover->groups.v[group].role == TN_STREAM_COMM;
}

static void find_waiting_groups(tn_schedule *s) {
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t k = s->hard.start[i]; is_collective_group(s, i) && k < s->hard.start[i + 1]; k++) {
      int32_t group = s->hard.to[k], kind = tn_kernel_collective(s->plan->cover->groups.v[i].kernel);
      bool first = !s->waits[group];
      s->waits[group] = !is_collective_group(s, group);
      s->early[group] = (first || s->early[group]) && kind == TN_REDUCE_SCATTER;
    }
}

static void *schedule_table(tn_schedule *s, size_t n, size_t size) {
  return tn_arena_alloc(&s->arena, n * size);
}

tn_status tn_schedule_prepare(tn_schedule *s) {
  size_t n = (size_t)s->n, buffers = s->plan->buffers.n;
  int32_t *seen = schedule_table(s, buffers, sizeof *seen);
  s->hard_left = schedule_table(s, n, sizeof *s->hard_left);
  s->soft_left = schedule_table(s, n, sizeof *s->soft_left);
  s->gain = schedule_table(s, n, sizeof *s->gain);
  s->done = schedule_table(s, n, sizeof *s->done);
  s->waits = schedule_table(s, n, sizeof *s->waits);
  s->early = schedule_table(s, n, sizeof *s->early);
  s->result_s = schedule_table(s, n, sizeof *s->result_s);
  s->listed = schedule_table(s, n, sizeof *s->listed);
  s->late = schedule_table(s, n, sizeof *s->late);
  s->ready = schedule_table(s, n, sizeof *s->ready);
  s->blocked = schedule_table(s, n, sizeof *s->blocked);
  s->placed = schedule_table(s, n, sizeof *s->placed);
  s->position = schedule_table(s, n, sizeof *s->position);
  s->readers_left = schedule_table(s, buffers, sizeof *s->readers_left);
  s->live = schedule_table(s, buffers, sizeof *s->live);
  if (seen == NULL || s->hard_left == NULL || s->soft_left == NULL || s->gain == NULL || s->done == NULL ||
      s->ready == NULL || s->blocked == NULL || s->readers_left == NULL || s->live == NULL ||
      s->waits == NULL || s->placed == NULL || s->position == NULL || s->late == NULL || s->listed == NULL ||
      s->early == NULL || s->result_s == NULL)
    return TN_ENOMEM;
  TN_TRY(collect_hard_edges(s));
  TN_TRY(collect_soft_edges(s));
  TN_TRY(collect_group_roots(s, false, seen, &s->reads));
  TN_TRY(collect_group_roots(s, true, seen, &s->writes));
  TN_TRY(collect_root_readers(s));
  TN_TRY(collect_root_writers(s));
  find_waiting_groups(s);
  TN_TRY(tn_schedule_find_drains(s));
  for (int32_t i = 0; i < s->hard.start[n]; i++) s->hard_left[s->hard.to[i]]++;
  for (int32_t i = 0; i < s->soft.start[n]; i++) s->soft_left[s->soft.to[i]]++;
  return TN_OK;
}
