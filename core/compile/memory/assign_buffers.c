/* core/compile/memory/assign_buffers.c: gives every value a buffer, and every buffer that needs one a fixed
 * place. */
#include "core/compile/inserted_groups.h"
#include "core/compile/memory/memory_plan.h"
#include "core/graph/uses.h"
#include "core/graph/input_state.h"
#include "tenon/attributes.h"

/* Groups stand this far apart in the order of the graph, so that added ones fit in between. */
enum { KEY_STEP = 4 };

/* Old values of states are copied before everything else, so that commits can overwrite them. */
enum { BEFORE_ALL = -1 };

/* More than any memory has; sums of thousands of sizes below it cannot overflow. */
static const int64_t largest_value = INT64_C(1) << 48;

/* ---- buffers ---- */

int32_t tn_plan_root(const tn_plan *plan, int32_t buffer, int64_t *offset) {
  *offset = 0;
  while (plan->buffers.v[buffer].parent >= 0) {
    *offset += plan->buffers.v[buffer].offset;
    buffer = plan->buffers.v[buffer].parent;
  }
  return buffer;
}

tn_place tn_plan_place_of(const tn_plan *plan, tn_val value) {
  if (value == 0 || plan->buffer_of.v[value] < 0) return (tn_place){TN_BASE_NONE, 0, 0};
  int64_t offset;
  int32_t root = tn_plan_root(plan, plan->buffer_of.v[value], &offset);
  tn_place place = plan->buffers.v[root].place;
  place.offset += offset;
  return place;
}

int64_t tn_plan_value_bytes(const tn_plan *plan, tn_val value) {
  const tn_gvalue *v = &plan->cover->graph->values.v[value];
  return tn_layout_bytes(&v->type, &v->layout);
}

bool tn_buffer_overlaps(const tn_buffer *buffer, const tn_place *place, int64_t bytes) {
  const tn_place *p = &buffer->place;
  return buffer->fixed && p->base == place->base && p->region == place->region &&
         p->offset < place->offset + bytes && place->offset < p->offset + buffer->bytes;
}

static tn_status new_buffer(tn_plan *plan, tn_val value, int32_t writer, int32_t *index) {
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

static tn_status fix(tn_plan *plan, int32_t buffer, tn_place place) {
  plan->buffers.v[buffer].fixed = true;
  plan->buffers.v[buffer].place = place;
  return TN_OK;
}

/* A buffer that a group writes as a whole, and that may still be given a place. */
static bool is_free(const tn_plan *plan, tn_val value) {
  const tn_buffer *b = &plan->buffers.v[plan->buffer_of.v[value]];
  return !b->fixed && b->parent < 0 && b->commit < 0 && b->bytes == tn_plan_value_bytes(plan, value);
}

/* ---- groups that the plan adds ---- */

static tn_status add_group(tn_plan *plan, const tn_group *group, int64_t key, int32_t *buffer) {
  int32_t index = (int32_t)plan->cover->groups.n;
  tn_graph *graph = plan->cover->graph;
  /* a copy lies like what it is a copy of, zeros are row-major */
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
  return new_buffer(plan, group->out[0], index, buffer);
}

tn_status tn_plan_add_copy(tn_plan *plan, tn_val value, int64_t entry_key, int32_t *buffer) {
  tn_group group;
  int32_t writer = plan->buffers.v[plan->buffer_of.v[value]].writer;
  int64_t key = writer < 0 ? entry_key : plan->key.v[writer] + 1;
  TN_TRY(tn_helper_copy(plan->cover, value, &group));
  return add_group(plan, &group, key, buffer);
}

/* ---- values ---- */

static tn_status place_results(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->groups.n; i++) {
    const tn_group *g = &plan->cover->groups.v[i];
    int32_t buffer;
    TN_TRY(tn_vec_push(plan->env, &plan->key, (int64_t)i * KEY_STEP));
    for (int32_t k = 0; k < g->n_out; k++) TN_TRY(new_buffer(plan, g->out[k], (int32_t)i, &buffer));
  }
  return TN_OK;
}

/* Where an input lies in the slot: as another program has it, if that is asked for, or behind all others. */
static int64_t slot_offset(tn_plan *plan, const char *name, int64_t bytes) {
  const tn_program *like = plan->cover->slot_like;
  for (int32_t i = 0; like != NULL && i < like->n_inputs; i++)
    if (tn_text_equal(like->inputs[i].name, name)) return like->inputs[i].offset;
  int64_t offset = plan->slot_bytes;
  plan->slot_bytes += tn_plan_aligned(bytes);
  return offset;
}

static tn_status place_input(tn_plan *plan, tn_val value) {
  const tn_graph *graph = plan->cover->graph;
  const tn_input_attributes *a = tn_graph_maker(graph, value)->attributes;
  int32_t buffer;
  TN_TRY(new_buffer(plan, value, -1, &buffer));
  int64_t offset = slot_offset(plan, a->name, plan->buffers.v[buffer].bytes);
  tn_binding binding = {a->name, *tn_graph_type(graph, value), offset};
  TN_TRY(tn_vec_push(plan->env, &plan->inputs, binding));
  return fix(plan, buffer, (tn_place){TN_BASE_SLOT, 0, offset});
}

static tn_status find_place(const tn_plan *plan, const char *path, const tn_type *type, tn_place *place) {
  const tn_placement *p = tn_state_map_find(plan->map, path);
  if (p == NULL) return tn_failf(plan->env, TN_EINVAL, "state %s has no place in the state map", path);
  if (!tn_type_equal(&p->type, type))
    return tn_failf(plan->env, TN_EINVAL,
                    "state %s is %s of %lld elements here, but %s of %lld in the state map", path,
                    tn_dtype_name(type->dtype), (long long)tn_type_count(type), tn_dtype_name(p->type.dtype),
                    (long long)tn_type_count(&p->type));
  *place = (tn_place){TN_BASE_REGION, p->region, p->offset * (int64_t)tn_dtype_size(type->dtype)};
  return TN_OK;
}

static tn_status place_states(tn_plan *plan) {
  const tn_graph *graph = plan->cover->graph;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    tn_place place;
    int32_t buffer;
    if (state->value == 0) continue;
    TN_TRY(find_place(plan, state->path, &state->type, &place));
    TN_TRY(new_buffer(plan, state->value, -1, &buffer));
    TN_TRY(fix(plan, buffer, place));
  }
  return TN_OK;
}

static tn_status place_view(tn_plan *plan, const tn_gnode *node) {
  plan->buffer_of.v[node->first_out] = plan->buffer_of.v[node->in[0]];
  if (plan->buffer_of.v[node->first_out] >= 0) return TN_OK;
  return tn_failf(plan->env, TN_EINTERNAL, "a view (%s) of a value that no kernel stores",
                  node->op->item.name);
}

static tn_status place_pack(tn_plan *plan, const tn_gnode *node) {
  int32_t buffer;
  TN_TRY(new_buffer(plan, node->first_out, -1, &buffer));
  plan->buffers.v[buffer].pack = true;
  return TN_OK;
}

/* Everything that no kernel makes, in graph order, so that a view's operand is placed before it. */
static tn_status place_rest(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->graph->nodes.n; i++) {
    const tn_gnode *node = &plan->cover->graph->nodes.v[i];
    tn_node_kind kind = tn_node_kind_of(node);
    if (node->group >= 0) continue;
    if (kind == TN_NODE_INPUT) TN_TRY(place_input(plan, node->first_out));
    if (kind == TN_NODE_VIEW) TN_TRY(place_view(plan, node));
    if (kind == TN_NODE_PACK) TN_TRY(place_pack(plan, node));
  }
  return TN_OK;
}

/* ---- packs ---- */

static void put_into(tn_plan *plan, int32_t part, int32_t pack, int64_t offset) {
  tn_buffer *p = &plan->buffers.v[part];
  p->parent = pack;
  p->offset = offset;
  p->next_part = plan->buffers.v[pack].first_part;
  plan->buffers.v[pack].first_part = part;
}

/* The key of the pack's earliest part, which zeros join. */
static int64_t earliest_key(const tn_plan *plan, int32_t pack) {
  int64_t key = INT64_MAX;
  for (int32_t p = plan->buffers.v[pack].first_part; p >= 0; p = plan->buffers.v[p].next_part)
    if (plan->key.v[plan->buffers.v[p].writer] < key) key = plan->key.v[plan->buffers.v[p].writer];
  return key == INT64_MAX ? 0 : key + 1;
}

static tn_status fill_gap(tn_plan *plan, int32_t pack, int32_t dtype, int64_t start, int64_t end) {
  tn_group group;
  int32_t part;
  if (start >= end) return TN_OK;
  TN_TRY(tn_helper_zeros(plan->cover, dtype, end - start, &group));
  TN_TRY(add_group(plan, &group, earliest_key(plan, pack), &part));
  put_into(plan, part, pack, start * (int64_t)tn_dtype_size(dtype));
  return TN_OK;
}

static bool goes_into(const tn_plan *plan, tn_val value) {
  return is_free(plan, value) && !plan->buffers.v[plan->buffer_of.v[value]].pack;
}

/* Operands whose buffers are their own are made in their slices; marks the others. */
static void fill_directly(tn_plan *plan, const tn_gnode *node, int64_t size, bool *left) {
  const tn_pack_attributes *a = node->attributes;
  int32_t pack = plan->buffer_of.v[node->first_out];
  for (int32_t i = 0; i < node->n_in; i++) {
    if (tn_plan_value_bytes(plan, node->in[i]) == 0) continue;
    left[i] = !goes_into(plan, node->in[i]);
    if (!left[i]) put_into(plan, plan->buffer_of.v[node->in[i]], pack, a->offsets.v[i] * size);
  }
}

static tn_status fill_by_copies(tn_plan *plan, const tn_gnode *node, int64_t size, const bool *left) {
  const tn_pack_attributes *a = node->attributes;
  int32_t pack = plan->buffer_of.v[node->first_out];
  int64_t key = earliest_key(plan, pack);
  for (int32_t i = 0; i < node->n_in; i++) {
    int32_t part;
    if (!left[i]) continue;
    TN_TRY(tn_plan_add_copy(plan, node->in[i], key, &part));
    put_into(plan, part, pack, a->offsets.v[i] * size);
  }
  return TN_OK;
}

static tn_status fill_gaps(tn_plan *plan, const tn_gnode *node, int32_t dtype) {
  const tn_pack_attributes *a = node->attributes;
  int32_t pack = plan->buffer_of.v[node->first_out];
  int64_t end = 0;
  for (int32_t i = 0; i < node->n_in; i++) {
    TN_TRY(fill_gap(plan, pack, dtype, end, a->offsets.v[i]));
    end = a->offsets.v[i] + tn_type_count(tn_graph_type(plan->cover->graph, node->in[i]));
  }
  return fill_gap(plan, pack, dtype, end, a->count);
}

/* The graph grows while a pack is lowered, so `node` is a copy. */
static tn_status lower_pack(tn_plan *plan, tn_gnode node) {
  int32_t dtype = tn_graph_type(plan->cover->graph, node.first_out)->dtype;
  int64_t size = (int64_t)tn_dtype_size(dtype);
  bool *left = tn_alloc(plan->env, (size_t)node.n_in * sizeof *left);
  if (left == NULL) return TN_ENOMEM;
  fill_directly(plan, &node, size, left);
  tn_status status = fill_by_copies(plan, &node, size, left);
  tn_release(plan->env, left);
  return status == TN_OK ? fill_gaps(plan, &node, dtype) : status;
}

static tn_status lower_packs(tn_plan *plan) {
  size_t n = plan->cover->graph->nodes.n;
  for (uint32_t i = 0; i < n; i++) {
    const tn_gnode *node = &plan->cover->graph->nodes.v[i];
    if (node->group < 0 && tn_node_kind_of(node) == TN_NODE_PACK) TN_TRY(lower_pack(plan, *node));
  }
  return TN_OK;
}

/* ---- commits and outputs ---- */

static tn_status check_overlap(const tn_plan *plan, const tn_plan_commit *commit) {
  for (size_t i = 0; i < plan->commits.n; i++) {
    const tn_plan_commit *other = &plan->commits.v[i];
    if (other->place.region == commit->place.region &&
        other->place.offset < commit->place.offset + commit->bytes &&
        commit->place.offset < other->place.offset + other->bytes)
      return tn_failf(plan->env, TN_EINVAL, "commits of %s and %s write the same memory", other->path,
                      commit->path);
  }
  return TN_OK;
}

static bool is_own_old_value(const tn_plan *plan, const tn_plan_commit *commit) {
  const tn_buffer *b = &plan->buffers.v[plan->buffer_of.v[commit->value]];
  return b->fixed && b->place.base == TN_BASE_REGION && b->place.region == commit->place.region &&
         b->place.offset == commit->place.offset;
}

/* The value's own buffer wants the state's place; a value that has one already is copied. Whether the
 * place can be had is seen once the order is known. */
static tn_status place_commit(tn_plan *plan, const tn_gcommit *source) {
  tn_type type = *tn_graph_type(plan->cover->graph, source->value);
  tn_plan_commit commit = {.path = source->path, .value = source->value};
  int32_t buffer = plan->buffer_of.v[source->value];
  TN_TRY(find_place(plan, source->path, &type, &commit.place));
  commit.bytes = tn_plan_value_bytes(plan, source->value);
  if (commit.bytes == 0 || is_own_old_value(plan, &commit)) return TN_OK;
  TN_TRY(check_overlap(plan, &commit));
  if (!is_free(plan, commit.value)) {
    TN_TRY(tn_plan_add_copy(plan, commit.value, BEFORE_ALL, &buffer));
    commit.value = plan->cover->groups.v[plan->buffers.v[buffer].writer].out[0];
  }
  plan->buffers.v[buffer].commit = (int32_t)plan->commits.n;
  return tn_vec_push(plan->env, &plan->commits, commit);
}

static tn_status place_commits(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->graph->commits.n; i++) {
    tn_gcommit commit = plan->cover->graph->commits.v[i];
    TN_TRY(place_commit(plan, &commit));
  }
  return TN_OK;
}

static tn_status place_outputs(tn_plan *plan) {
  for (size_t i = 0; i < plan->cover->graph->outputs.n; i++) {
    tn_goutput output = plan->cover->graph->outputs.v[i];
    plan->output_bytes += plan->guard;
    tn_binding binding = {output.name, *tn_graph_type(plan->cover->graph, output.value), plan->output_bytes};
    int32_t buffer = plan->buffer_of.v[output.value];
    if (!is_free(plan, output.value)) TN_TRY(tn_plan_add_copy(plan, output.value, BEFORE_ALL, &buffer));
    TN_TRY(fix(plan, buffer, (tn_place){TN_BASE_OUTPUT, 0, plan->output_bytes}));
    plan->output_bytes += tn_plan_aligned(plan->buffers.v[buffer].bytes) + plan->guard;
    TN_TRY(tn_vec_push(plan->env, &plan->outputs, binding));
  }
  return TN_OK;
}

tn_status tn_plan_place(tn_plan *plan) {
  size_t n = plan->cover->graph->values.n;
  TN_TRY(tn_vec_reserve(plan->env, &plan->buffer_of, n));
  plan->slot_bytes = plan->cover->slot_like != NULL ? plan->cover->slot_like->slot_bytes : 0;
  while (plan->buffer_of.n < n) plan->buffer_of.v[plan->buffer_of.n++] = -1;
  TN_TRY(place_results(plan));
  TN_TRY(place_states(plan));
  TN_TRY(place_rest(plan));
  TN_TRY(place_commits(plan));
  TN_TRY(lower_packs(plan));
  return place_outputs(plan);
}
