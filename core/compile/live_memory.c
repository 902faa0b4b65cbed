/* core/compile/live_memory.c: see live_memory.h. */
#include "core/compile/live_memory.h"

#include "core/compile/memory/memory_plan.h"
#include "core/graph/uses.h"

static bool live_is_block(const tn_buffer *b) {
  return b->parent < 0 && !b->fixed && b->first <= b->last && b->bytes > 0;
}

/* The update belongs to no layer, and its collectives to layers "bucket N". */
static bool live_is_of_update(const tn_gnode *node) {
  const char *layer = node->layer != NULL ? node->layer : "";
  return (tn_node_kind_of(node) == TN_NODE_PACK && layer[0] == '\0') || tn_text_starts(layer, "bucket ");
}

/* Per buffer: it holds gradients of parameters, which the update packs into vectors. */
static void live_mark_gradients(const tn_plan *plan, bool *gradients) {
  const tn_graph *graph = plan->cover->graph;
  for (size_t i = 0; i < graph->nodes.n; i++) {
    const tn_gnode *node = &graph->nodes.v[i];
    int64_t offset;
    if (node->n_out == 0 || !live_is_of_update(node) || plan->buffer_of.v[node->first_out] < 0) continue;
    gradients[tn_plan_root(plan, plan->buffer_of.v[node->first_out], &offset)] = true;
  }
}

static tn_live_memory live_workspace(const tn_plan *plan, int32_t step) {
  const tn_group *g = tn_plan_group_at(plan, step);
  int64_t bytes = g->fallback != NULL ? 0 : g->choice.workspace_bytes;
  return (tn_live_memory){plan->workspace[step], bytes, step, step, TN_LIVE_WORKSPACE};
}

static tn_live_memory live_workspace_of_constants(const tn_plan *plan) {
  tn_live_memory one = {.first = -1, .last = -1, .kind = TN_LIVE_WORKSPACE};
  for (size_t i = 0; i < plan->cover->constants.n; i++) {
    int64_t bytes = plan->cover->constants.v[i].choice.workspace_bytes;
    if (bytes > one.bytes) one.bytes = bytes;
  }
  return one;
}

/* `list` has room. */
static void live_add(const tn_plan *plan, tn_live_memory block, tn_live_memory *list, int32_t *n) {
  if (block.bytes == 0) return;
  block.bytes = tn_interval_aligned(block.bytes + (block.first < 0 ? 0 : 2 * plan->guard));
  list[(*n)++] = block;
}

static int32_t live_kind(const tn_plan *plan, const tn_buffer *b, bool gradient) {
  if (b->writer >= 0 && tn_plan_is_streamed_fetch(plan, &plan->cover->groups.v[b->writer]))
    return TN_LIVE_STREAMED;
  return gradient ? TN_LIVE_GRADIENT : TN_LIVE_ACTIVATION;
}

static void live_add_buffers(const tn_plan *plan, const bool *gradients, tn_live_memory *list,
                             tn_live_memories *live) {
  for (size_t i = 0; i < plan->buffers.n; i++) {
    const tn_buffer *b = &plan->buffers.v[i];
    int32_t kind = live_kind(plan, b, gradients[i]);
    if (live_is_block(b))
      live_add(plan, (tn_live_memory){b->location.offset, b->bytes, b->first, b->last, kind}, list, &live->n);
    else if (gradients[i] && b->fixed && b->location.base == TN_BASE_CONSTANT)
      live->kept_gradients += tn_interval_aligned(b->bytes);
  }
}

tn_status tn_live_memory_list(const tn_plan *plan, tn_arena *arena, tn_live_memories *live) {
  tn_live_memory *list =
      tn_arena_alloc(arena, tn_size_mul(plan->buffers.n + plan->order.n + 1, sizeof *list));
  bool *gradients = tn_alloc(plan->env, (plan->buffers.n + 1) * sizeof *gradients);
  *live = (tn_live_memories){.v = list};
  if (list != NULL && gradients != NULL) {
    live_mark_gradients(plan, gradients);
    live_add_buffers(plan, gradients, list, live);
    for (size_t s = 0; s < plan->order.n; s++)
      live_add(plan, live_workspace(plan, (int32_t)s), list, &live->n);
    live_add(plan, live_workspace_of_constants(plan), list, &live->n);
  }
  tn_status status = list != NULL && gradients != NULL ? TN_OK : TN_ENOMEM;
  tn_release(plan->env, gradients);
  return status;
}

void tn_live_memory_curve(const tn_live_memories *live, int32_t kind, int32_t n_steps, int64_t *bytes) {
  for (int32_t s = 0; s <= n_steps; s++) bytes[s] = 0;
  for (int32_t i = 0; i < live->n; i++) {
    const tn_live_memory *one = &live->v[i];
    if (kind != TN_LIVE_KINDS && kind != one->kind) continue;
    bytes[one->first + 1] += one->bytes;
    if (one->last + 2 <= n_steps) bytes[one->last + 2] -= one->bytes;
  }
  for (int32_t s = 1; s <= n_steps; s++) bytes[s] += bytes[s - 1];
}
