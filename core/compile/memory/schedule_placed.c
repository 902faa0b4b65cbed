/* core/compile/memory/schedule_placed.c: the order of the groups that are placed on the host, and of those
 * that read the values which are copied to it: the norm of a bucket of gradients, and whether they are
 * finite. Those run as soon as they can, since the bucket's memory is free behind them. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/memory/schedule_graph.h"

/* The results of a group that drains a value have at most this part of its bytes. */
enum { DRAINED_PART = 64 };

static bool has_placed_key_before(const tn_schedule *s, int32_t a, int32_t b) {
  int64_t key_a = s->plan->key.v[a], key_b = s->plan->key.v[b];
  return key_a != key_b ? key_a < key_b : a < b;
}

/* The last group that copies an operand to the host; -1: none does. */
static int32_t last_operand_position(const tn_schedule *s, int32_t group) {
  const tn_group *groups = s->plan->cover->groups.v, *g = &groups[group];
  int32_t last = -1;
  for (int32_t k = 0; k < g->n_in; k++) {
    int32_t writer = g->in[k] == 0 ? -1 : s->plan->buffers.v[s->plan->buffer_of.v[g->in[k]]].writer;
    bool copied = writer >= 0 && groups[writer].fallback == NULL;
    if (copied && s->position[writer] > last) last = s->position[writer];
  }
  return last;
}

int32_t tn_schedule_pop_placed(tn_schedule *s) {
  int32_t best = -1, best_position = 0;
  for (int32_t i = 0; i < s->n_placed; i++) {
    int32_t position = last_operand_position(s, s->placed[i]);
    bool first = best < 0 || position < best_position ||
                 (position == best_position && has_placed_key_before(s, s->placed[i], s->placed[best]));
    if (first) best_position = position;
    if (first) best = i;
  }
  if (best < 0) return -1;
  int32_t group = s->placed[best];
  s->placed[best] = s->placed[--s->n_placed];
  return group;
}

/* ---- values that are copied to the host ---- */

/* Marks the roots that placed groups have copied; returns whether there are any. */
static bool mark_copied_roots(const tn_schedule *s, bool *copied) {
  bool any = false;
  for (int32_t i = 0; i < s->n; i++) {
    bool offload = tn_plan_is_placed_transfer(&s->plan->cover->groups.v[i], TN_TRANSFER_OFFLOAD);
    for (int32_t k = s->reads.start[i]; offload && k < s->reads.start[i + 1]; k++)
      any = copied[s->reads.to[k]] = true;
  }
  return any;
}

static bool drains_copied_root(const tn_schedule *s, int32_t group, const bool *copied) {
  int64_t read = 0, made = 0;
  const tn_group *g = &s->plan->cover->groups.v[group];
  if (g->fallback != NULL || g->role != TN_STREAM_COMPUTE) return false;
  for (int32_t k = s->reads.start[group]; k < s->reads.start[group + 1]; k++)
    if (copied[s->reads.to[k]]) read += s->plan->buffers.v[s->reads.to[k]].bytes;
  for (int32_t k = 0; k < g->n_out; k++) made += tn_plan_value_bytes(s->plan, g->out[k]);
  return read > 0 && made <= read / DRAINED_PART;
}

tn_status tn_schedule_find_drains(tn_schedule *s) {
  bool *copied = tn_arena_alloc(&s->arena, s->plan->buffers.n * sizeof *copied + 1);
  if (copied == NULL) return TN_ENOMEM;
  if (!mark_copied_roots(s, copied)) return TN_OK;
  s->drains = tn_arena_alloc(&s->arena, (size_t)s->n * sizeof *s->drains);
  if (s->drains == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < s->n; i++) s->drains[i] = drains_copied_root(s, i, copied);
  return TN_OK;
}

int32_t tn_schedule_next_drain(const tn_schedule *s) {
  int32_t best = -1;
  for (int32_t i = 0; s->drains != NULL && i < s->n_ready; i++) {
    int32_t group = s->ready[i];
    if (s->done[group] || !s->drains[group]) continue;
    if (best < 0 || has_placed_key_before(s, group, best)) best = group;
  }
  return best;
}
