/* core/compile/memory/reuse_buffers.c: lifetimes of buffers, and results that take over the buffer of an
 * operand. */
#include "core/compile/memory/memory_plan.h"

static int32_t root_of(const tn_plan *plan, tn_val value, int64_t *offset) {
  *offset = 0;
  return value == 0 ? -1 : tn_plan_root(plan, plan->buffer_of.v[value], offset);
}

static void use_at(tn_plan *plan, tn_val value, int32_t step) {
  int64_t offset;
  int32_t root = root_of(plan, value, &offset);
  if (root < 0) return;
  tn_buffer *b = &plan->buffers.v[root];
  if (step < b->first) b->first = step;
  if (step > b->last) b->last = step;
}

/* The device's memory is used by what falls back only while the cut copies: out of it before the first of
 * its steps, into it after the last. */
static void use_in_cut(tn_plan *plan, const tn_plan_segment *cut) {
  for (int32_t i = 0; i < cut->n_out; i++) use_at(plan, plan->out.v[cut->first_out + i].value, cut->first);
  for (int32_t i = 0; i < cut->n_in; i++)
    use_at(plan, plan->in.v[cut->first_in + i].value, cut->first + cut->n - 1);
}

static void find_lifetimes(tn_plan *plan) {
  for (size_t i = 0; i < plan->segments.n; i++) use_in_cut(plan, &plan->segments.v[i]);
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = &plan->cover->groups.v[plan->order.v[s]];
    if (g->fallback != NULL) continue;
    for (int32_t k = 0; k < g->n_in; k++) use_at(plan, g->in[k], (int32_t)s);
    for (int32_t k = 0; k < g->n_out; k++) use_at(plan, g->out[k], (int32_t)s);
  }
}

static bool declares_pair(const tn_group *g, int32_t operand, int32_t result) {
  for (int32_t i = 0; i < g->choice.n_inplace; i++)
    if (g->choice.inplace[i][0] == operand && g->choice.inplace[i][1] == result) return true;
  return false;
}

/* Every operand that lies in the buffer must be allowed to be overwritten, and lie where the result
 * would. */
static bool all_operands_allow(const tn_plan *plan, const tn_group *g, int32_t root, int32_t result) {
  for (int32_t k = 0; k < g->n_in; k++) {
    int64_t offset;
    if (root_of(plan, g->in[k], &offset) != root) continue;
    if (offset != 0 || !declares_pair(g, k, result)) return false;
    if (tn_plan_value_bytes(plan, g->in[k]) != plan->buffers.v[root].bytes) return false;
  }
  return true;
}

/* No other result may have taken the buffer already. */
static bool is_taken(const tn_plan *plan, const tn_group *g, int32_t root) {
  for (int32_t k = 0; k < g->n_out; k++) {
    int64_t offset;
    if (root_of(plan, g->out[k], &offset) == root) return true;
  }
  return false;
}

static void try_pair(tn_plan *plan, int32_t step, const tn_group *g, int32_t operand, int32_t result) {
  int64_t offset;
  int32_t from = root_of(plan, g->in[operand], &offset), to = plan->buffer_of.v[g->out[result]];
  if (from < 0) return;
  tn_buffer *old = &plan->buffers.v[from], *new = &plan->buffers.v[to];
  if (old->fixed || old->last != step || old->bytes != new->bytes || old->bytes == 0) return;
  if (new->fixed || new->parent >= 0 || new->pack) return;
  if (is_taken(plan, g, from) || !all_operands_allow(plan, g, from, result)) return;
  new->parent = from;
  new->offset = 0;
  if (new->last > old->last) old->last = new->last;
}

tn_status tn_plan_share(tn_plan *plan) {
  find_lifetimes(plan);
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = &plan->cover->groups.v[plan->order.v[s]];
    for (int32_t i = 0; i < g->choice.n_inplace && g->fallback == NULL; i++)
      try_pair(plan, (int32_t)s, g, g->choice.inplace[i][0], g->choice.inplace[i][1]);
  }
  return TN_OK;
}
