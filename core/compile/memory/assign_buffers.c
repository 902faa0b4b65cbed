/* core/compile/memory/assign_buffers.c: a buffer for every value, and fixed locations for inputs, states and
 * outputs. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/memory/memory_plan.h"
#include "core/graph/input_state.h"
#include "core/graph/uses.h"

/* The distance of the groups' keys in the order of the graph; added groups get keys in between. */
enum { KEY_STEP = 4 };

/* The key of copies of states' old values, which come first so that commits can overwrite the states. */
enum { BEFORE_ALL = -1 };

/* ---- values ---- */

static tn_status fix_buffer_location(tn_plan *plan, int32_t buffer, tn_location location) {
  plan->buffers.v[buffer].fixed = true;
  plan->buffers.v[buffer].location = location;
  return TN_OK;
}

static tn_status add_result_buffers(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->groups.n; i++) {
    const tn_group *g = &plan->cover->groups.v[i];
    int32_t buffer;
    bool offload = tn_kernel_transfer(g->kernel) == TN_TRANSFER_OFFLOAD;
    TN_TRY(tn_vec_push(plan->env, &plan->key, (int64_t)i * KEY_STEP));
    for (int32_t k = 0; k < g->n_out; k++) {
      TN_TRY(tn_plan_add_buffer(plan, g->out[k], (int32_t)i, &buffer));
      if (offload) TN_TRY(fix_buffer_location(plan, buffer, (tn_location){TN_BASE_OFFLOAD, 0, 0}));
    }
  }
  return TN_OK;
}

/* Results of groups that are launched once: each has memory of its own. */
static tn_status add_constant_buffers(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->constants.n; i++) {
    const tn_group *g = &plan->cover->constants.v[i];
    int32_t buffer;
    for (int32_t k = 0; k < g->n_out; k++) {
      TN_TRY(tn_plan_add_buffer(plan, g->out[k], -1, &buffer));
      TN_TRY(fix_buffer_location(plan, buffer, (tn_location){TN_BASE_CONSTANT, 0, plan->constant_bytes}));
      plan->constant_bytes += tn_interval_aligned(plan->buffers.v[buffer].bytes);
    }
  }
  return TN_OK;
}

/* The offset of an input in the slot: that of the plan's slot layout, or else behind all other inputs. */
static int64_t input_slot_offset(tn_plan *plan, const char *name, int64_t bytes) {
  const tn_slot_layout *slot = plan->slot;
  for (int32_t i = 0; slot != NULL && i < slot->n_inputs; i++)
    if (tn_text_equal(slot->inputs[i].name, name)) return slot->inputs[i].offset;
  int64_t offset = plan->slot_bytes;
  plan->slot_bytes += tn_interval_aligned(bytes);
  return offset;
}

static tn_status add_input_buffer(tn_plan *plan, tn_val value) {
  const tn_graph *graph = plan->cover->graph;
  const tn_input_attributes *a = tn_graph_maker(graph, value)->attributes;
  int32_t buffer;
  TN_TRY(tn_plan_add_buffer(plan, value, -1, &buffer));
  int64_t offset = input_slot_offset(plan, a->name, plan->buffers.v[buffer].bytes);
  tn_binding binding = {a->name, *tn_graph_type(graph, value), offset};
  TN_TRY(tn_vec_push(plan->env, &plan->inputs, binding));
  return fix_buffer_location(plan, buffer, (tn_location){TN_BASE_SLOT, 0, offset});
}

static bool has_input(const tn_plan *plan, const char *name) {
  for (size_t i = 0; i < plan->inputs.n; i++)
    if (tn_text_equal(plan->inputs.v[i].name, name)) return true;
  return false;
}

/* Inputs that programs after this one read from the same slot. */
static tn_status add_other_inputs(tn_plan *plan) {
  const tn_slot_layout *slot = plan->slot;
  for (int32_t i = 0; slot != NULL && slot->all && i < slot->n_inputs; i++)
    if (!has_input(plan, slot->inputs[i].name))
      TN_TRY(tn_vec_push(plan->env, &plan->inputs, slot->inputs[i]));
  return TN_OK;
}

static tn_status find_state_location(const tn_plan *plan, const char *path, const tn_type *type,
                                     tn_location *location) {
  const tn_placement *p = tn_state_map_find(plan->map, path);
  if (p == NULL) return tn_failf(plan->env, TN_EINVAL, "state %s is not in the state map", path);
  if (!tn_type_equal(&p->type, type))
    return tn_failf(plan->env, TN_EINVAL,
                    "state %s is %s of %lld elements here, but %s of %lld in the state map", path,
                    tn_dtype_name(type->dtype), (long long)tn_type_count(type), tn_dtype_name(p->type.dtype),
                    (long long)tn_type_count(&p->type));
  *location = (tn_location){TN_BASE_REGION, p->region, p->offset * (int64_t)tn_dtype_size(type->dtype)};
  return TN_OK;
}

static tn_status add_state_buffers(tn_plan *plan) {
  const tn_graph *graph = plan->cover->graph;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    tn_location location;
    int32_t buffer;
    if (state->value == 0) continue;
    TN_TRY(find_state_location(plan, state->path, &state->type, &location));
    TN_TRY(tn_plan_add_buffer(plan, state->value, -1, &buffer));
    TN_TRY(fix_buffer_location(plan, buffer, location));
  }
  return TN_OK;
}

static tn_status share_view_buffer(tn_plan *plan, const tn_gnode *node) {
  plan->buffer_of.v[node->first_out] = plan->buffer_of.v[node->in[0]];
  if (plan->buffer_of.v[node->first_out] >= 0) return TN_OK;
  return tn_failf(plan->env, TN_EINTERNAL, "a view (%s) of a value that no kernel stores",
                  node->op->item.name);
}

static tn_status add_pack_buffer(tn_plan *plan, const tn_gnode *node) {
  int32_t buffer;
  TN_TRY(tn_plan_add_buffer(plan, node->first_out, -1, &buffer));
  plan->buffers.v[buffer].pack = true;
  return TN_OK;
}

/* Values that no kernel makes, in graph order, so that the operand of a view has a buffer before the view. */
static tn_status add_other_buffers(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->graph->nodes.n; i++) {
    const tn_gnode *node = &plan->cover->graph->nodes.v[i];
    tn_node_kind kind = tn_node_kind_of(node);
    if (node->group >= 0) continue;
    if (kind == TN_NODE_INPUT) TN_TRY(add_input_buffer(plan, node->first_out));
    if (kind == TN_NODE_VIEW) TN_TRY(share_view_buffer(plan, node));
    if (kind == TN_NODE_PACK) TN_TRY(add_pack_buffer(plan, node));
  }
  return TN_OK;
}

/* ---- commits and outputs ---- */

/* Notes the end of the commit, and compares it with the others unless it lies behind them, as it mostly does.
 */
static tn_status check_commit_overlap(tn_plan *plan, const tn_plan_commit *commit) {
  size_t region = (size_t)commit->location.region;
  int64_t end = commit->location.offset + commit->bytes;
  while (plan->commits_end.n <= region) TN_TRY(tn_vec_push(plan->env, &plan->commits_end, 0));
  int64_t others_end = plan->commits_end.v[region];
  if (end > others_end) plan->commits_end.v[region] = end;
  if (commit->location.offset >= others_end) return TN_OK;
  for (size_t i = 0; i < plan->commits.n; i++) {
    const tn_plan_commit *other = &plan->commits.v[i];
    if (other->location.region == commit->location.region &&
        other->location.offset < commit->location.offset + commit->bytes &&
        commit->location.offset < other->location.offset + other->bytes)
      return tn_failf(plan->env, TN_EINVAL, "commits of %s and %s write the same memory", other->path,
                      commit->path);
  }
  return TN_OK;
}

static bool is_unchanged_state(const tn_plan *plan, const tn_plan_commit *commit) {
  const tn_buffer *b = &plan->buffers.v[plan->buffer_of.v[commit->value]];
  return b->fixed && b->location.base == TN_BASE_REGION && b->location.region == commit->location.region &&
         b->location.offset == commit->location.offset;
}

/* The value's own buffer asks for the state's location; a value with another location is copied first. Phase
 * commits_in_place decides whether the buffer gets it, since that depends on the order. */
static tn_status request_commit_location(tn_plan *plan, const tn_gcommit *source) {
  tn_type type = *tn_graph_type(plan->cover->graph, source->value);
  tn_plan_commit commit = {.path = source->path, .value = source->value};
  int32_t buffer = plan->buffer_of.v[source->value];
  TN_TRY(find_state_location(plan, source->path, &type, &commit.location));
  commit.bytes = tn_plan_value_bytes(plan, source->value);
  if (commit.bytes == 0 || is_unchanged_state(plan, &commit)) return TN_OK;
  TN_TRY(check_commit_overlap(plan, &commit));
  if (!tn_plan_is_free(plan, commit.value)) {
    TN_TRY(tn_plan_add_copy(plan, commit.value, tn_plan_is_host_region(plan, &commit.location), BEFORE_ALL,
                            &buffer));
    commit.value = plan->cover->groups.v[plan->buffers.v[buffer].writer].out[0];
  }
  plan->buffers.v[buffer].commit = (int32_t)plan->commits.n;
  return tn_vec_push(plan->env, &plan->commits, commit);
}

static tn_status request_commit_locations(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->graph->commits.n; i++) {
    tn_gcommit commit = plan->cover->graph->commits.v[i];
    TN_TRY(request_commit_location(plan, &commit));
  }
  return TN_OK;
}

static tn_status fix_outputs(tn_plan *plan) {
  plan->output_bytes = plan->slot != NULL ? plan->slot->first_output : 0;
  for (size_t i = 0; i < plan->cover->graph->outputs.n; i++) {
    tn_goutput output = plan->cover->graph->outputs.v[i];
    plan->output_bytes += plan->guard;
    tn_binding binding = {output.name, *tn_graph_type(plan->cover->graph, output.value), plan->output_bytes};
    int32_t buffer = plan->buffer_of.v[output.value];
    if (!tn_plan_is_free(plan, output.value))
      TN_TRY(tn_plan_add_copy(plan, output.value, false, BEFORE_ALL, &buffer));
    TN_TRY(fix_buffer_location(plan, buffer, (tn_location){TN_BASE_OUTPUT, 0, plan->output_bytes}));
    plan->output_bytes += tn_interval_aligned(plan->buffers.v[buffer].bytes) + plan->guard;
    TN_TRY(tn_vec_push(plan->env, &plan->outputs, binding));
  }
  return TN_OK;
}

tn_status tn_plan_assign_buffers(tn_plan *plan) {
  size_t n = plan->cover->graph->values.n;
  TN_TRY(tn_vec_reserve(plan->env, &plan->buffer_of, n));
  plan->slot_bytes = plan->slot != NULL ? plan->slot->bytes : 0;
  while (plan->buffer_of.n < n) plan->buffer_of.v[plan->buffer_of.n++] = -1;
  TN_TRY(add_result_buffers(plan));
  TN_TRY(add_constant_buffers(plan));
  TN_TRY(add_state_buffers(plan));
  TN_TRY(add_other_buffers(plan));
  TN_TRY(add_other_inputs(plan));
  TN_TRY(request_commit_locations(plan));
  TN_TRY(tn_plan_lower_packs(plan));
  TN_TRY(fix_outputs(plan));
  for (size_t b = 0; b < plan->buffers.n; b++) tn_plan_fix_placed_result(plan, (int32_t)b);
  return TN_OK;
}
