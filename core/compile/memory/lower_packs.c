/* core/compile/memory/lower_packs.c: makes the operands of packs parts of their buffers. */
#include "core/compile/constant_groups.h"
#include "core/compile/memory/memory_plan.h"
#include "core/compile/select/inserted_groups.h"
#include "core/graph/uses.h"
#include "tenon/attributes.h"

static void put_into_pack(tn_plan *plan, int32_t part, int32_t pack, int64_t offset) {
  tn_buffer *p = &plan->buffers.v[part];
  p->parent = pack;
  p->offset = offset;
  p->next_part = plan->buffers.v[pack].first_part;
  plan->buffers.v[pack].first_part = part;
}

/* The key after that of the pack's first writer. */
static int64_t key_after_first_part(const tn_plan *plan, int32_t pack) {
  int64_t key = INT64_MAX;
  for (int32_t p = plan->buffers.v[pack].first_part; p >= 0; p = plan->buffers.v[p].next_part)
    if (plan->key.v[plan->buffers.v[p].writer] < key) key = plan->key.v[plan->buffers.v[p].writer];
  return key == INT64_MAX ? 0 : key + 1;
}

/* The gaps between the operands of a pack. */
typedef struct tn_pack_gaps {
  int32_t pack, dtype;
  bool empty;  /* the pack had no part when `key` was found */
  int64_t key; /* of the groups that fill the gaps: that after the pack's first writer */
  bool kept;   /* the pack has memory of its own: its gaps are filled once */
} tn_pack_gaps;

static bool has_collectives(const tn_cover *cover) {
  for (size_t i = 0; i < cover->groups.n; i++)
    if (cover->groups.v[i].role != TN_STREAM_COMPUTE) return true;
  return false;
}

/* Whether a pack may have memory of its own. A small one costs less memory than its gaps cost launches. The
 * location of a pack that a collective reads or writes is that of the collective's other operand. */
static bool may_keep_pack(const tn_plan *plan, int32_t pack) {
  const tn_buffer *b = &plan->buffers.v[pack];
  return plan->keeps_packs && b->bytes <= TN_CONSTANT_VALUE_BYTES && !b->fixed && b->parent < 0 &&
         b->commit < 0 && !has_collectives(plan->cover);
}

/* Moves the pack out of the arena, where other values would overwrite the gaps. */
static void keep_pack(tn_plan *plan, int32_t pack) {
  tn_buffer *b = &plan->buffers.v[pack];
  if (b->fixed) return;
  b->fixed = true;
  b->location = (tn_location){TN_BASE_CONSTANT, 0, plan->constant_bytes};
  plan->constant_bytes += tn_interval_aligned(b->bytes);
}

static tn_status fill_kept_gap(tn_plan *plan, const tn_pack_gaps *gaps, int64_t start, tn_group *zeros) {
  int32_t part;
  keep_pack(plan, gaps->pack);
  tn_location location = plan->buffers.v[gaps->pack].location;
  location.offset += start * (int64_t)tn_dtype_size(gaps->dtype);
  zeros->choice.out_layout[0] = plan->cover->graph->values.v[zeros->out[0]].layout = tn_layout_row_major(1);
  TN_TRY(tn_vec_push(plan->env, &plan->cover->constants, *zeros));
  TN_TRY(tn_plan_add_buffer(plan, zeros->out[0], -1, &part));
  plan->buffers.v[part].fixed = true;
  plan->buffers.v[part].location = location;
  return TN_OK;
}

static tn_status fill_pack_gap(tn_plan *plan, tn_pack_gaps *gaps, int64_t start, int64_t end) {
  tn_group group;
  int32_t part;
  if (start >= end) return TN_OK;
  if (gaps->empty) {
    gaps->key = key_after_first_part(plan, gaps->pack);
    gaps->empty = plan->buffers.v[gaps->pack].first_part < 0;
  }
  TN_TRY(tn_make_zeros_group(plan->cover, gaps->dtype, end - start, &group));
  if (gaps->kept) return fill_kept_gap(plan, gaps, start, &group);
  TN_TRY(tn_plan_add_group(plan, &group, gaps->key, &part));
  put_into_pack(plan, part, gaps->pack, start * (int64_t)tn_dtype_size(gaps->dtype));
  return TN_OK;
}

static bool is_made_in_place(const tn_plan *plan, tn_val value) {
  return tn_plan_is_free(plan, value) && !plan->buffers.v[plan->buffer_of.v[value]].pack;
}

/* Operands with free buffers are made in the pack; marks the others in `left`. */
static void fill_pack_in_place(tn_plan *plan, const tn_gnode *node, int64_t size, bool *left) {
  const tn_pack_attributes *a = node->attributes;
  int32_t pack = plan->buffer_of.v[node->first_out];
  for (int32_t i = 0; i < node->n_in; i++) {
    if (tn_plan_value_bytes(plan, node->in[i]) == 0) continue;
    left[i] = !is_made_in_place(plan, node->in[i]);
    if (!left[i]) put_into_pack(plan, plan->buffer_of.v[node->in[i]], pack, a->offsets.v[i] * size);
  }
}

static tn_status fill_pack_by_copies(tn_plan *plan, const tn_gnode *node, int64_t size, const bool *left) {
  const tn_pack_attributes *a = node->attributes;
  int32_t pack = plan->buffer_of.v[node->first_out];
  int64_t key = key_after_first_part(plan, pack);
  for (int32_t i = 0; i < node->n_in; i++) {
    int32_t part;
    if (!left[i]) continue;
    TN_TRY(tn_plan_add_copy(plan, node->in[i], false, key, &part));
    put_into_pack(plan, part, pack, a->offsets.v[i] * size);
  }
  return TN_OK;
}

static tn_status fill_pack_gaps(tn_plan *plan, const tn_gnode *node, int32_t dtype) {
  const tn_pack_attributes *a = node->attributes;
  tn_pack_gaps gaps = {.pack = plan->buffer_of.v[node->first_out], .dtype = dtype, .empty = true};
  int64_t end = 0;
  gaps.kept = may_keep_pack(plan, gaps.pack);
  for (int32_t i = 0; i < node->n_in; i++) {
    TN_TRY(fill_pack_gap(plan, &gaps, end, a->offsets.v[i]));
    end = a->offsets.v[i] + tn_type_count(tn_graph_type(plan->cover->graph, node->in[i]));
  }
  return fill_pack_gap(plan, &gaps, end, a->count);
}

/* `node` is a copy, since the graph grows. */
static tn_status lower_pack(tn_plan *plan, tn_gnode node) {
  int32_t dtype = tn_graph_type(plan->cover->graph, node.first_out)->dtype;
  int64_t size = (int64_t)tn_dtype_size(dtype);
  bool *left = tn_alloc(plan->env, (size_t)node.n_in * sizeof *left);
  if (left == NULL) return TN_ENOMEM;
  fill_pack_in_place(plan, &node, size, left);
  tn_status status = fill_pack_by_copies(plan, &node, size, left);
  tn_release(plan->env, left);
  return status == TN_OK ? fill_pack_gaps(plan, &node, dtype) : status;
}

tn_status tn_plan_lower_packs(tn_plan *plan) {
  size_t n = plan->cover->graph->nodes.n;
  for (uint32_t i = 0; i < n; i++) {
    const tn_gnode *node = &plan->cover->graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_PACK) TN_TRY(lower_pack(plan, *node));
  }
  return TN_OK;
}
