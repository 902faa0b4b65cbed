/* core/compile/memory/buffers.c: buffers of values, and groups that the plan adds. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/layout/layout.h"
#include "core/compile/memory/memory_plan.h"
#include "core/compile/select/inserted_groups.h"

/* Larger than any memory; sums of thousands of sizes below it cannot overflow. */
static const int64_t largest_value = INT64_C(1) << 48;

int32_t tn_plan_root(const tn_plan *plan, int32_t buffer, int64_t *offset) {
  *offset = 0;
  while (plan->buffers.v[buffer].parent >= 0) {
    *offset += plan->buffers.v[buffer].offset;
    buffer = plan->buffers.v[buffer].parent;
  }
  return buffer;
}

tn_location tn_plan_location(const tn_plan *plan, tn_val value) {
  if (value == 0 || plan->buffer_of.v[value] < 0) return (tn_location){TN_BASE_NONE, 0, 0};
  int64_t offset;
  int32_t root = tn_plan_root(plan, plan->buffer_of.v[value], &offset);
  tn_location location = plan->buffers.v[root].location;
  location.offset += offset;
  return location;
}

int64_t tn_plan_value_bytes(const tn_plan *plan, tn_val value) {
  const tn_gvalue *v = &plan->cover->graph->values.v[value];
  return tn_layout_bytes(&v->type, &v->layout);
}

int32_t tn_plan_region_around(const tn_plan *plan, int32_t region) {
  int32_t around = plan->map->regions.v[region].inside;
  return around >= 0 ? around : region;
}

/* A region inside of another one may lie anywhere in it: where, depends on the rank. */
static bool is_inside_same_region(const tn_plan *plan, const tn_location *a, const tn_location *b) {
  return a->base == TN_BASE_REGION && a->region != b->region &&
         tn_plan_region_around(plan, a->region) == tn_plan_region_around(plan, b->region);
}

bool tn_buffer_overlaps(const tn_plan *plan, const tn_buffer *buffer, const tn_location *location,
                        int64_t bytes) {
  const tn_location *p = &buffer->location;
  if (!buffer->fixed || p->base != location->base) return false;
  if (is_inside_same_region(plan, p, location)) return true;
  return p->region == location->region && p->offset < location->offset + bytes &&
         location->offset < p->offset + buffer->bytes;
}

tn_status tn_plan_add_buffer(tn_plan *plan, tn_val value, int32_t writer, int32_t *index) {
  int64_t bytes = tn_plan_value_bytes(plan, value);
  tn_buffer buffer = {.bytes = bytes,
                      .parent = -1,
                      .commit = -1,
                      .writer = writer,
                      .first_part = -1,
                      .next_part = -1,
                      .first = INT32_MAX,
                      .last = -1,
                      .image = -1};
  if (bytes > largest_value)
    return tn_failf(plan->env, TN_EINVAL, "a value of the program is too large: more than 2^48 bytes");
  *index = (int32_t)plan->buffers.n;
  TN_TRY(tn_vec_push(plan->env, &plan->buffers, buffer));
  while (plan->buffer_of.n <= value) TN_TRY(tn_vec_push(plan->env, &plan->buffer_of, -1));
  plan->buffer_of.v[value] = *index;
  return TN_OK;
}

bool tn_plan_is_free(const tn_plan *plan, tn_val value) {
  const tn_buffer *b = &plan->buffers.v[plan->buffer_of.v[value]];
  return !b->fixed && b->parent < 0 && b->commit < 0 && b->bytes == tn_plan_value_bytes(plan, value);
}

/* ---- placed groups ---- */

bool tn_plan_is_placed_transfer(const tn_group *group, int32_t transfer) {
  return group->placed && tn_kernel_transfer(group->kernel) == transfer;
}

bool tn_plan_is_streamed_fetch(const tn_plan *plan, const tn_group *group) {
  if (group->placed || tn_kernel_transfer(group->kernel) != TN_TRANSFER_FETCH) return false;
  const tn_buffer *from = &plan->buffers.v[plan->buffer_of.v[group->in[0]]];
  return from->fixed && tn_plan_is_host_region(plan, &from->location);
}

void tn_plan_fix_placed_result(tn_plan *plan, int32_t buffer) {
  tn_buffer *b = &plan->buffers.v[buffer];
  const tn_group *writer = b->writer >= 0 ? &plan->cover->groups.v[b->writer] : NULL;
  if (writer == NULL || !writer->placed || writer->fallback == NULL || b->fixed || b->commit >= 0) return;
  b->fixed = true;
  b->location = (tn_location){TN_BASE_OFFLOAD, 0, 0};
}

/* ---- added groups ---- */

tn_status tn_plan_add_group(tn_plan *plan, const tn_group *group, int64_t key, int32_t *buffer) {
  int32_t index = (int32_t)plan->cover->groups.n;
  tn_graph *graph = plan->cover->graph;
  /* a copy has the layout of its operand, zeros are row-major */
  for (int32_t i = 0; i < group->n_out; i++)
    graph->values.v[group->out[i]].layout =
        group->n_in > 0 ? graph->values.v[group->in[0]].layout
                        : tn_layout_row_major(tn_graph_type(graph, group->out[i])->rank);
  for (int32_t i = 0; i < group->n_in; i++) group->choice.in_layout[i] = graph->values.v[group->in[i]].layout;
  for (int32_t i = 0; i < group->n_out; i++)
    group->choice.out_layout[i] = graph->values.v[group->out[i]].layout;
  for (int32_t i = 0; i < group->n_nodes; i++) graph->nodes.v[group->nodes[i]].group = index;
  TN_TRY(tn_vec_push(plan->env, &plan->cover->groups, *group));
  TN_TRY(tn_vec_push(plan->env, &plan->key, key));
  return tn_plan_add_buffer(plan, group->out[0], index, buffer);
}

tn_status tn_plan_add_copy(tn_plan *plan, tn_val value, bool host, int64_t entry_key, int32_t *buffer) {
  tn_group group;
  int32_t writer = plan->buffers.v[plan->buffer_of.v[value]].writer;
  int64_t key = writer < 0 ? entry_key : plan->key.v[writer] + 1;
  TN_TRY(host ? tn_make_host_copy_group(plan->cover, value, &group)
              : tn_make_copy_group(plan->cover, value, &group));
  return tn_plan_add_group(plan, &group, key, buffer);
}
