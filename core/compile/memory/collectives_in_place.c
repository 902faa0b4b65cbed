/* core/compile/memory/collectives_in_place.c: all_reduce in place.
 *
 * The operand of an all_reduce becomes a part of the result's buffer, at the same location. A bucket of
 * gradients is a slice of the flat vector, so the gradients in the bucket are then made in the flat vector
 * itself. Other readers of the operand run before the collective, which overwrites it. */
#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/memory/memory_plan.h"
#include "tenon/plugin/communicator.h"

/* Whether a value is in a buffer or in a part of it. */
static bool is_in_buffer(const tn_plan *plan, tn_val value, int32_t buffer) {
  int32_t b = value == 0 ? -1 : plan->buffer_of.v[value];
  while (b >= 0 && b != buffer) b = plan->buffers.v[b].parent;
  return b == buffer;
}

static bool reads_buffer(const tn_plan *plan, const tn_group *group, int32_t buffer) {
  for (int32_t k = 0; k < group->n_in; k++)
    if (is_in_buffer(plan, group->in[k], buffer)) return true;
  return false;
}

/* The operand has no location of its own, and the result is in the arena. */
static bool can_share_location(const tn_plan *plan, int32_t operand, int32_t result) {
  int64_t offset;
  const tn_buffer *from = &plan->buffers.v[operand], *to = &plan->buffers.v[result];
  const tn_buffer *root = &plan->buffers.v[tn_plan_root(plan, result, &offset)];
  return !from->fixed && from->parent < 0 && from->commit < 0 && from->bytes == to->bytes &&
         operand != result && !root->fixed && root->commit < 0;
}

/* Groups are in topological order: a reader before the collective cannot depend on it, but a reader after it
 * can. */
static bool has_no_later_reader(const tn_plan *plan, int32_t collective, int32_t operand) {
  for (size_t i = (size_t)collective + 1; i < plan->cover->groups.n; i++)
    if (reads_buffer(plan, &plan->cover->groups.v[i], operand)) return false;
  return true;
}

static tn_status order_after_readers(tn_plan *plan, int32_t collective, int32_t operand) {
  for (int32_t i = 0; i < collective; i++) {
    tn_plan_edge edge = {i, collective};
    if (reads_buffer(plan, &plan->cover->groups.v[i], operand))
      TN_TRY(tn_vec_push(plan->env, &plan->edges, edge));
  }
  return TN_OK;
}

static tn_status put_operand_in_result(tn_plan *plan, int32_t collective) {
  const tn_group *g = &plan->cover->groups.v[collective];
  int32_t operand = plan->buffer_of.v[g->in[0]], result = plan->buffer_of.v[g->out[0]];
  if (!can_share_location(plan, operand, result) || !has_no_later_reader(plan, collective, operand))
    return TN_OK;
  TN_TRY(order_after_readers(plan, collective, operand));
  plan->buffers.v[operand].parent = result;
  plan->buffers.v[operand].offset = 0;
  return TN_OK;
}

tn_status tn_plan_collectives_in_place(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->groups.n; i++)
    if (tn_kernel_collective(plan->cover->groups.v[i].kernel) == TN_ALL_REDUCE)
      TN_TRY(put_operand_in_result(plan, (int32_t)i));
  return TN_OK;
}
