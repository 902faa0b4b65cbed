/* core/compile/memory/collectives_in_place.c: collectives in place.
 *
 * A collective's result may have a place already: a bucket of gradients is a slice of the flat vector. Then
 * its operand takes that place over, and with it what lies in the operand: gradients are made in the flat
 * vector itself. Whoever else reads them must be done before the collective overwrites them. */
#include "core/compile/select/collective_kernel.h"
#include "core/compile/memory/memory_plan.h"

/* Whether a value lies in a buffer or in a part of it. */
static bool lies_in(const tn_plan *plan, tn_val value, int32_t buffer) {
  int32_t b = value == 0 ? -1 : plan->buffer_of.v[value];
  while (b >= 0 && b != buffer) b = plan->buffers.v[b].parent;
  return b == buffer;
}

static bool reads(const tn_plan *plan, const tn_group *group, int32_t buffer) {
  for (int32_t k = 0; k < group->n_in; k++)
    if (lies_in(plan, group->in[k], buffer)) return true;
  return false;
}

/* The operand has no place of its own, and the result's is in the arena. */
static bool can_move(const tn_plan *plan, int32_t operand, int32_t result) {
  int64_t offset;
  const tn_buffer *from = &plan->buffers.v[operand], *to = &plan->buffers.v[result];
  const tn_buffer *root = &plan->buffers.v[tn_plan_root(plan, result, &offset)];
  return !from->fixed && from->parent < 0 && from->commit < 0 && from->bytes == to->bytes &&
         operand != result && !root->fixed && root->commit < 0;
}

/* Groups stand in an order in which operands come first, so that one before the collective cannot depend on
 * it; one after it might. */
static bool can_wait(const tn_plan *plan, int32_t collective, int32_t operand) {
  for (size_t i = (size_t)collective + 1; i < plan->cover->groups.n; i++)
    if (reads(plan, &plan->cover->groups.v[i], operand)) return false;
  return true;
}

static tn_status wait_for_readers(tn_plan *plan, int32_t collective, int32_t operand) {
  for (int32_t i = 0; i < collective; i++) {
    tn_plan_edge edge = {i, collective};
    if (reads(plan, &plan->cover->groups.v[i], operand)) TN_TRY(tn_vec_push(plan->env, &plan->edges, edge));
  }
  return TN_OK;
}

static tn_status adopt(tn_plan *plan, int32_t collective) {
  const tn_group *g = &plan->cover->groups.v[collective];
  int32_t operand = plan->buffer_of.v[g->in[0]], result = plan->buffer_of.v[g->out[0]];
  if (!can_move(plan, operand, result) || !can_wait(plan, collective, operand)) return TN_OK;
  TN_TRY(wait_for_readers(plan, collective, operand));
  plan->buffers.v[operand].parent = result;
  plan->buffers.v[operand].offset = 0;
  return TN_OK;
}

tn_status tn_plan_adopt(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->groups.n; i++)
    if (tn_kernel_is_collective(plan->cover->groups.v[i].kernel)) TN_TRY(adopt(plan, (int32_t)i));
  return TN_OK;
}
