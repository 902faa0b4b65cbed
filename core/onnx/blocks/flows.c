/* core/onnx/blocks/flows.c: see blocks.h. */
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* A value is a result where a line behind a group of the kind reads it. */
static tn_status flow_outputs(blocks *b, block_kind *kind) {
  const block_group *own = &b->groups.v[kind->group];
  int32_t first = b->lines[own->first].first_value;
  int32_t n = (own->end < b->n_lines ? b->lines[own->end].first_value : b->n_values) - first;
  bool *read = tn_arena_alloc(b->arena, (size_t)n + 1);
  kind->outputs = tn_arena_alloc(b->arena, (size_t)n * sizeof *kind->outputs + 1);
  if (read == NULL || kind->outputs == NULL) return TN_ENOMEM;
  for (int32_t i = kind->head; i >= 0; i = b->groups.v[i].next) {
    const block_group *g = &b->groups.v[i];
    for (int32_t k = 0; k < n; k++)
      read[k] = read[k] || b->last_use[b->lines[g->first].first_value + k] >= g->end;
  }
  for (int32_t k = 0; k < n; k++)
    if (read[k]) kind->outputs[kind->n_outputs++] = k;
  return TN_OK;
}

/* The result of group `before` that is input i of g; -1: none. */
static int32_t flow_result(const blocks *b, const block_kind *kind, const block_group *before,
                           const block_group *g, int32_t i) {
  block_ref ref = g->inputs[i];
  if (ref.line < before->first || ref.line >= before->end) return -1;
  int32_t value = block_value(b, ref) - b->lines[before->first].first_value;
  for (int32_t k = 0; k < kind->n_outputs; k++)
    if (kind->outputs[k] == value) return k;
  return -1;
}

/* The input that result k of the group before is; -1: none. */
static int32_t flow_input(const int32_t *flow, int32_t n_inputs, int32_t k) {
  for (int32_t i = 0; i < n_inputs; i++)
    if (flow[i] == k) return i;
  return -1;
}

/* Results that the next group reads come first, and so do its inputs that they are. */
static void flow_sort(block_kind *kind, const int32_t *flow, int32_t n_inputs) {
  int32_t n = 0;
  for (int32_t k = 0; k < kind->n_outputs; k++) {
    int32_t input = flow_input(flow, n_inputs, k), value = kind->outputs[k];
    if (input < 0) continue;
    memmove(kind->outputs + n + 1, kind->outputs + n, (size_t)(k - n) * sizeof value);
    kind->outputs[n] = value;
    kind->order[n++] = input;
  }
  for (int32_t i = 0; i < n_inputs; i++)
    if (flow[i] < 0) kind->order[n++] = i;
}

static void flow_order(const blocks *b, block_kind *kind) {
  const block_group *own = &b->groups.v[kind->group], *before = &b->groups.v[kind->head];
  int32_t flow[BLOCK_MOST_INPUTS], flows = 0;
  for (int32_t i = 0; i < own->n_inputs; i++) flow[i] = -1;
  for (int32_t next = before->next; next >= 0 && flows == 0; next = before->next) {
    const block_group *g = &b->groups.v[next];
    for (int32_t i = 0; i < g->n_inputs; i++) flows += (flow[i] = flow_result(b, kind, before, g, i)) >= 0;
    before = g;
  }
  flow_sort(kind, flow, own->n_inputs);
}

tn_status block_find_flows(blocks *b, block_kind *kind, bool *few) {
  kind->n_outputs = 0;
  TN_TRY(flow_outputs(b, kind));
  *few = kind->n_outputs <= BLOCK_MOST_OUTPUTS;
  if (*few) flow_order(b, kind);
  return TN_OK;
}
