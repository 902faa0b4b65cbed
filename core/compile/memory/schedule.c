/* core/compile/memory/schedule.c: pass `schedule`: the order in which groups are launched.
 *
 * List scheduling. Hard edges lead from the groups that write a buffer to those that read it. Soft
 * edges lead from the readers of a state's old value to the group that writes the new one, so that
 * the commit can be in place, and to a clone from the group that it waits for; they are broken only
 * where hard edges contradict them. Among the groups that are ready, one that frees at least as much
 * memory as it takes goes first (it can only lower what is live), the one that frees most before
 * others; else the order of the graph decides. Collectives begin as soon as they can, and who reads their
 * results comes when there is nothing else to do beside them. */
#include <string.h>

#include "core/compile/memory/memory_plan.h"

/* Pairs (from, to) made rows: the `to` of each `from`. */
typedef struct rows {
  int32_t *start, *to;
} rows;

typedef struct edge {
  int32_t from, to;
} edge;

typedef struct schedule {
  tn_plan *plan;
  tn_arena arena;
  int32_t n;        /* groups */
  bool collectives; /* whether there are any */
  TN_VEC(edge) edges;
  rows hard, soft;
  int32_t *hard_left, *soft_left; /* predecessors that have not run */
  rows readers;                   /* per root buffer: groups that read it, each once */
  rows reads;                     /* per group: roots that it reads and that can die */
  rows writes;                    /* per group: roots that it writes and that take memory */
  int32_t *readers_left;          /* per buffer */
  bool *alive;                    /* per buffer: taken already */
  int64_t *gain;                  /* per group: bytes freed by running it now */
  bool *done, *waits;             /* per group; waits: for a collective on another stream */
  int32_t *ready, n_ready;        /* heap by key */
  int32_t *late, n_late;          /* heap by key: ready, but to be kept waiting by a collective */
  int32_t *blocked, n_blocked;    /* heap by key: ready but for soft edges */
  TN_VEC(int32_t) freeing;        /* ready groups that free what they take */
} schedule;

/* ---- edges ---- */

static tn_status add_edge(schedule *s, int32_t from, int32_t to) {
  edge e = {from, to};
  return from == to ? TN_OK : tn_vec_push(s->plan->env, &s->edges, e);
}

/* Sorts the collected edges into rows by counting, and forgets them. */
static tn_status make_rows(schedule *s, int32_t n_from, rows *r) {
  r->start = tn_arena_alloc(&s->arena, ((size_t)n_from + 2) * sizeof *r->start);
  r->to = tn_arena_alloc(&s->arena, s->edges.n * sizeof *r->to);
  if (r->start == NULL || r->to == NULL) return TN_ENOMEM;
  int32_t *fill = r->start + 1;
  for (size_t i = 0; i < s->edges.n; i++) fill[s->edges.v[i].from + 1]++;
  for (int32_t i = 0; i < n_from; i++) fill[i + 1] += fill[i];
  for (size_t i = 0; i < s->edges.n; i++) r->to[fill[s->edges.v[i].from]++] = s->edges.v[i].to;
  s->edges.n = 0;
  return TN_OK;
}

/* Edges from everything that writes a buffer: its writer, or those of its parts. */
static tn_status edges_from_writers(schedule *s, int32_t buffer, int32_t to) {
  const tn_buffer *b = &s->plan->buffers.v[buffer];
  if (b->writer >= 0) TN_TRY(add_edge(s, b->writer, to));
  for (int32_t p = b->first_part; p >= 0; p = s->plan->buffers.v[p].next_part)
    TN_TRY(add_edge(s, s->plan->buffers.v[p].writer, to));
  return TN_OK;
}

static tn_status collect_hard(schedule *s) {
  for (int32_t i = 0; i < s->n; i++) {
    const tn_group *g = &s->plan->cover->groups.v[i];
    for (int32_t k = 0; k < g->n_in; k++)
      if (g->in[k] != 0) TN_TRY(edges_from_writers(s, s->plan->buffer_of.v[g->in[k]], i));
  }
  for (size_t i = 0; i < s->plan->edges.n; i++)
    TN_TRY(add_edge(s, s->plan->edges.v[i].from, s->plan->edges.v[i].to));
  return make_rows(s, s->n, &s->hard);
}

static tn_status edges_to_writers(schedule *s, int32_t reader, int32_t buffer) {
  const tn_buffer *b = &s->plan->buffers.v[buffer];
  if (b->writer >= 0) TN_TRY(add_edge(s, reader, b->writer));
  for (int32_t p = b->first_part; p >= 0; p = s->plan->buffers.v[p].next_part)
    TN_TRY(add_edge(s, reader, s->plan->buffers.v[p].writer));
  return TN_OK;
}

/* A group reads a fixed buffer: it should do so before any commit overwrites it. */
static tn_status soft_edges_of(schedule *s, int32_t reader, const tn_buffer *read) {
  for (size_t b = 0; b < s->plan->buffers.n; b++) {
    int32_t commit = s->plan->buffers.v[b].commit;
    if (commit < 0) continue;
    const tn_plan_commit *c = &s->plan->commits.v[commit];
    if (tn_buffer_overlaps(read, &c->place, c->bytes)) TN_TRY(edges_to_writers(s, reader, (int32_t)b));
  }
  return TN_OK;
}

static tn_status collect_soft(schedule *s) {
  for (int32_t i = 0; i < s->n; i++) {
    const tn_group *g = &s->plan->cover->groups.v[i];
    if (g->after > 0) TN_TRY(add_edge(s, g->after - 1, i));
    for (int32_t k = 0; k < g->n_in && s->plan->commits.n > 0; k++) {
      const tn_buffer *b = g->in[k] == 0 ? NULL : &s->plan->buffers.v[s->plan->buffer_of.v[g->in[k]]];
      if (b != NULL && b->fixed && b->place.base == TN_BASE_REGION) TN_TRY(soft_edges_of(s, i, b));
    }
  }
  return make_rows(s, s->n, &s->soft);
}

/* ---- memory ---- */

/* The root of a value's buffer if it takes and frees arena memory; -1 if its place is fixed. */
static int32_t arena_root(const schedule *s, tn_val value) {
  int64_t offset;
  if (value == 0) return -1;
  int32_t root = tn_plan_root(s->plan, s->plan->buffer_of.v[value], &offset);
  const tn_buffer *b = &s->plan->buffers.v[root];
  return b->fixed || b->commit >= 0 ? -1 : root;
}

/* Edges group -> root, each pair once: `seen[root]` is the last group that named it. */
static tn_status collect_roots(schedule *s, bool results, int32_t *seen, rows *r) {
  for (size_t b = 0; b < s->plan->buffers.n; b++) seen[b] = -1;
  for (int32_t i = 0; i < s->n; i++) {
    const tn_group *g = &s->plan->cover->groups.v[i];
    for (int32_t k = 0; k < (results ? g->n_out : g->n_in); k++) {
      int32_t root = arena_root(s, results ? g->out[k] : g->in[k]);
      if (root < 0 || seen[root] == i) continue;
      seen[root] = i;
      edge e = {i, root};
      TN_TRY(tn_vec_push(s->plan->env, &s->edges, e));
    }
  }
  return make_rows(s, s->n, r);
}

static tn_status collect_readers(schedule *s) {
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t k = s->reads.start[i]; k < s->reads.start[i + 1]; k++) {
      edge e = {s->reads.to[k], i};
      TN_TRY(tn_vec_push(s->plan->env, &s->edges, e));
      s->readers_left[s->reads.to[k]]++;
    }
  return make_rows(s, (int32_t)s->plan->buffers.n, &s->readers);
}

static bool is_collective(const schedule *s, int32_t group) {
  return s->plan->cover->groups.v[group].role == TN_STREAM_COMM;
}

static void find_waiting(schedule *s) {
  for (int32_t i = 0; i < s->n; i++)
    for (int32_t k = s->hard.start[i]; is_collective(s, i) && k < s->hard.start[i + 1]; k++)
      s->waits[s->hard.to[k]] = !is_collective(s, s->hard.to[k]);
}

static void *table(schedule *s, size_t n, size_t size) { return tn_arena_alloc(&s->arena, n * size); }

static tn_status prepare(schedule *s) {
  size_t n = (size_t)s->n, buffers = s->plan->buffers.n;
  int32_t *seen = table(s, buffers, sizeof *seen);
  s->hard_left = table(s, n, sizeof *s->hard_left);
  s->soft_left = table(s, n, sizeof *s->soft_left);
  s->gain = table(s, n, sizeof *s->gain);
  s->done = table(s, n, sizeof *s->done);
  s->waits = table(s, n, sizeof *s->waits);
  s->late = table(s, n, sizeof *s->late);
  s->ready = table(s, n, sizeof *s->ready);
  s->blocked = table(s, n, sizeof *s->blocked);
  s->readers_left = table(s, buffers, sizeof *s->readers_left);
  s->alive = table(s, buffers, sizeof *s->alive);
  if (seen == NULL || s->hard_left == NULL || s->soft_left == NULL || s->gain == NULL || s->done == NULL ||
      s->ready == NULL || s->blocked == NULL || s->readers_left == NULL || s->alive == NULL ||
      s->waits == NULL || s->late == NULL)
    return TN_ENOMEM;
  TN_TRY(collect_hard(s));
  TN_TRY(collect_soft(s));
  TN_TRY(collect_roots(s, false, seen, &s->reads));
  TN_TRY(collect_roots(s, true, seen, &s->writes));
  TN_TRY(collect_readers(s));
  find_waiting(s);
  for (int32_t i = 0; i < s->hard.start[n]; i++) s->hard_left[s->hard.to[i]]++;
  for (int32_t i = 0; i < s->soft.start[n]; i++) s->soft_left[s->soft.to[i]]++;
  return TN_OK;
}

/* ---- heaps of groups by key ---- */

static bool before(const schedule *s, int32_t a, int32_t b) {
  int64_t key_a = s->plan->key.v[a], key_b = s->plan->key.v[b];
  return key_a != key_b ? key_a < key_b : a < b;
}

static void heap_push(const schedule *s, int32_t *heap, int32_t *n, int32_t group) {
  int32_t at = (*n)++;
  while (at > 0 && before(s, group, heap[(at - 1) / 2])) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = group;
}

static int32_t heap_pop(const schedule *s, int32_t *heap, int32_t *n) {
  int32_t top = heap[0], last = heap[--*n], at = 0;
  for (;;) {
    int32_t child = 2 * at + 1;
    if (child >= *n) break;
    if (child + 1 < *n && before(s, heap[child + 1], heap[child])) child++;
    if (!before(s, heap[child], last)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return top;
}

/* ---- running ---- */

static int64_t taken_bytes(const schedule *s, int32_t group) {
  int64_t bytes = 0;
  for (int32_t k = s->writes.start[group]; k < s->writes.start[group + 1]; k++)
    if (!s->alive[s->writes.to[k]]) bytes += s->plan->buffers.v[s->writes.to[k]].bytes;
  return bytes;
}

static bool is_ready(const schedule *s, int32_t group) {
  return !s->done[group] && s->hard_left[group] == 0 && s->soft_left[group] == 0;
}

/* What falls back waits for its turn, so that few cuts do all of it. */
static tn_status note_freeing(schedule *s, int32_t group) {
  if (s->plan->cover->groups.v[group].fallback != NULL) return TN_OK;
  if (!is_ready(s, group) || s->waits[group] || s->gain[group] < taken_bytes(s, group)) return TN_OK;
  return tn_vec_push(s->plan->env, &s->freeing, group);
}

static tn_status enter(schedule *s, int32_t group) {
  if (s->soft_left[group] > 0) {
    heap_push(s, s->blocked, &s->n_blocked, group);
    return TN_OK;
  }
  if (s->waits[group])
    heap_push(s, s->late, &s->n_late, group);
  else
    heap_push(s, s->ready, &s->n_ready, group);
  return note_freeing(s, group);
}

/* One reader less; the last one left would free the buffer. */
static tn_status release_root(schedule *s, int32_t root) {
  if (--s->readers_left[root] != 1) return TN_OK;
  for (int32_t k = s->readers.start[root]; k < s->readers.start[root + 1]; k++) {
    int32_t group = s->readers.to[k];
    if (s->done[group]) continue;
    s->gain[group] += s->plan->buffers.v[root].bytes;
    return note_freeing(s, group);
  }
  return TN_OK;
}

static tn_status run_group(schedule *s, int32_t group) {
  s->done[group] = true;
  TN_TRY(tn_vec_push(s->plan->env, &s->plan->order, group));
  for (int32_t k = s->writes.start[group]; k < s->writes.start[group + 1]; k++)
    s->alive[s->writes.to[k]] = true;
  for (int32_t k = s->reads.start[group]; k < s->reads.start[group + 1]; k++)
    TN_TRY(release_root(s, s->reads.to[k]));
  for (int32_t k = s->hard.start[group]; k < s->hard.start[group + 1]; k++)
    if (--s->hard_left[s->hard.to[k]] == 0) TN_TRY(enter(s, s->hard.to[k]));
  for (int32_t k = s->soft.start[group]; k < s->soft.start[group + 1]; k++) {
    int32_t next = s->soft.to[k];
    if (--s->soft_left[next] == 0 && s->hard_left[next] == 0 && !s->done[next]) TN_TRY(enter(s, next));
  }
  return TN_OK;
}

/* The group that frees most beyond what it takes; groups that have run drop out of the list. */
static int32_t pop_freeing(schedule *s) {
  int64_t best = -1;
  size_t at = 0, n = 0;
  for (size_t i = 0; i < s->freeing.n; i++) {
    int32_t group = s->freeing.v[i];
    if (s->done[group]) continue;
    int64_t net = s->gain[group] - taken_bytes(s, group);
    if (net > best || (net == best && before(s, group, s->freeing.v[at]))) {
      best = net;
      at = n;
    }
    s->freeing.v[n++] = group;
  }
  s->freeing.n = n;
  return best < 0 ? -1 : s->freeing.v[at];
}

static int32_t pop(schedule *s, int32_t *heap, int32_t *n) {
  while (*n > 0) {
    int32_t group = heap_pop(s, heap, n);
    if (!s->done[group]) return group;
  }
  return -1;
}

/* While what falls back is being done, more of it costs no further wait. */
static int32_t pop_fallback(const schedule *s) {
  const tn_group *groups = s->plan->cover->groups.v;
  const int32_t *order = s->plan->order.v;
  int32_t best = -1;
  if (s->plan->order.n == 0 || groups[order[s->plan->order.n - 1]].fallback == NULL) return -1;
  for (int32_t i = 0; i < s->n_ready; i++) {
    int32_t group = s->ready[i];
    if (s->done[group] || groups[group].fallback == NULL) continue;
    if (best < 0 || before(s, group, best)) best = group;
  }
  return best;
}

/* A collective has a stream of its own: the sooner it starts, the more runs beside it. */
static int32_t pop_collective(const schedule *s) {
  const tn_group *groups = s->plan->cover->groups.v;
  int32_t best = -1;
  for (int32_t i = 0; s->collectives && i < s->n_ready; i++) {
    int32_t group = s->ready[i];
    if (s->done[group] || groups[group].role != TN_STREAM_COMM) continue;
    if (best < 0 || before(s, group, best)) best = group;
  }
  return best;
}

static int32_t choose(schedule *s) {
  int32_t group = pop_collective(s);
  if (group < 0) group = pop_fallback(s);
  if (group < 0) group = pop_freeing(s);
  if (group < 0) group = pop(s, s->ready, &s->n_ready);
  if (group < 0) group = pop(s, s->late, &s->n_late);
  return group >= 0 ? group : pop(s, s->blocked, &s->n_blocked);
}

/* A buffer that one group alone reads dies when that group runs. */
static void start_gains(schedule *s) {
  for (size_t b = 0; b < s->plan->buffers.n; b++)
    if (s->readers_left[b] == 1) s->gain[s->readers.to[s->readers.start[b]]] += s->plan->buffers.v[b].bytes;
}

static tn_status run_all(schedule *s) {
  start_gains(s);
  for (int32_t i = 0; i < s->n; i++) {
    s->collectives |= s->plan->cover->groups.v[i].role == TN_STREAM_COMM;
    if (s->hard_left[i] == 0) TN_TRY(enter(s, i));
  }
  for (int32_t i = 0; i < s->n; i++) {
    int32_t group = choose(s);
    if (group < 0) return tn_failf(s->plan->env, TN_EINTERNAL, "groups of the cover wait for each other");
    TN_TRY(run_group(s, group));
  }
  return TN_OK;
}

tn_status tn_plan_schedule(tn_plan *plan) {
  schedule s = {.plan = plan, .arena = tn_arena_new(plan->env), .n = (int32_t)plan->cover->groups.n};
  tn_status status = prepare(&s);
  if (status == TN_OK) status = run_all(&s);
  tn_vec_free(plan->env, &s.edges);
  tn_vec_free(plan->env, &s.freeing);
  tn_arena_free(&s.arena);
  return status;
}
