/* core/compile/memory/reuse_buffers.c: live intervals of buffers (liveness), and results that reuse the
 * buffer of an operand whose live interval ends. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/memory/memory_plan.h"

static int32_t value_root(const tn_plan *plan, tn_val value, int64_t *offset) {
  *offset = 0;
  return value == 0 ? -1 : tn_plan_root(plan, plan->buffer_of.v[value], offset);
}

static void extend_value_to(tn_plan *plan, tn_val value, int32_t step) {
  int64_t offset;
  int32_t root = value_root(plan, value, &offset);
  if (root < 0) return;
  tn_buffer *b = &plan->buffers.v[root];
  if (step < b->first) b->first = step;
  if (step > b->last) b->last = step;
}

/* A cut uses device memory only for its transfers: out of it before the first step, into it after the last.
 */
static void extend_to_transfers(tn_plan *plan, const tn_plan_segment *cut) {
  for (int32_t i = 0; i < cut->n_out; i++)
    extend_value_to(plan, plan->out.v[cut->first_out + i].value, cut->first);
  for (int32_t i = 0; i < cut->n_in; i++)
    extend_value_to(plan, plan->in.v[cut->first_in + i].value, cut->first + cut->n - 1);
}

/* A step before that time does not overwrite the value, which would have to wait for the copy. */
static void note_copies(tn_plan *plan) {
  for (int32_t s = 0, n = (int32_t)plan->order.n; plan->ends != NULL && s < n; s++) {
    const tn_group *g = tn_plan_group_at(plan, s);
    int64_t offset;
    if (tn_kernel_transfer(g->kernel) != TN_TRANSFER_OFFLOAD) continue;
    tn_buffer *b = &plan->buffers.v[value_root(plan, g->in[0], &offset)];
    int32_t end = s + 1;
    while (end < n && plan->order.v[end] != plan->ends[plan->order.v[s]]) end++;
    if (end > b->copied) b->copied = end;
  }
}

/* The host does not wait for a fetch, so its operand stays until the end. */
static void find_live_intervals(tn_plan *plan) {
  for (size_t i = 0; i < plan->segments.n; i++) extend_to_transfers(plan, &plan->segments.v[i]);
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = &plan->cover->groups.v[plan->order.v[s]];
    if (g->fallback != NULL && !g->placed) continue;
    int32_t last = tn_plan_is_placed_transfer(g, TN_TRANSFER_FETCH) ? (int32_t)plan->order.n - 1 : (int32_t)s;
    for (int32_t k = 0; k < g->n_in; k++) extend_value_to(plan, g->in[k], (int32_t)s);
    for (int32_t k = 0; k < g->n_in; k++) extend_value_to(plan, g->in[k], last);
    for (int32_t k = 0; k < g->n_out; k++) extend_value_to(plan, g->out[k], (int32_t)s);
  }
}

/* Every operand in the buffer must be an in-place pair with the result, and have the same bytes. */
static bool all_operands_allow_reuse(const tn_plan *plan, const tn_group *g, int32_t root, int32_t result) {
  for (int32_t k = 0; k < g->n_in; k++) {
    int64_t offset;
    if (value_root(plan, g->in[k], &offset) != root) continue;
    if (offset != 0 || !tn_group_is_inplace_pair(g, k, result)) return false;
    if (tn_plan_value_bytes(plan, g->in[k]) != plan->buffers.v[root].bytes) return false;
  }
  return true;
}

/* Whether another result reuses the buffer already. */
static bool is_buffer_reused(const tn_plan *plan, const tn_group *g, int32_t root) {
  for (int32_t k = 0; k < g->n_out; k++) {
    int64_t offset;
    if (value_root(plan, g->out[k], &offset) == root) return true;
  }
  return false;
}

static void try_inplace_pair(tn_plan *plan, int32_t step, const tn_group *g, int32_t operand,
                             int32_t result) {
  int64_t offset;
  int32_t from = value_root(plan, g->in[operand], &offset), to = plan->buffer_of.v[g->out[result]];
  if (from < 0) return;
  tn_buffer *old = &plan->buffers.v[from], *new = &plan->buffers.v[to];
  if (old->fixed || old->last != step || old->copied > step || old->bytes != new->bytes || old->bytes == 0)
    return;
  if (new->fixed || new->parent >= 0 || new->pack) return;
  if (is_buffer_reused(plan, g, from) || !all_operands_allow_reuse(plan, g, from, result)) return;
  new->parent = from;
  new->offset = 0;
  if (new->last > old->last) old->last = new->last;
}

tn_status tn_plan_reuse_buffers(tn_plan *plan) {
  find_live_intervals(plan);
  note_copies(plan);
  for (size_t s = 0; s < plan->order.n; s++) {
    const tn_group *g = &plan->cover->groups.v[plan->order.v[s]];
    for (int32_t i = 0; i < g->choice.n_inplace && g->fallback == NULL; i++)
      try_inplace_pair(plan, (int32_t)s, g, g->choice.inplace[i][0], g->choice.inplace[i][1]);
  }
  return TN_OK;
}
