/* core/onnx/blocks/items.c: see blocks.h. */
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* Groups stand in the order of their first lines, outer ones first. */
tn_status block_find_items(block_context *c) {
  const blocks *b = c->b;
  size_t g = c->group != NULL ? (size_t)(c->group - b->groups.v) + 1 : 0;
  for (int32_t i = c->first; i < c->end;) {
    block_item item = {.line = i, .group = -1, .chained = 1};
    while (g < b->groups.n && b->groups.v[g].first < i) g++;
    for (; g < b->groups.n && b->groups.v[g].first == i && item.group < 0; g++)
      if (b->groups.v[g].kind >= 0 && b->kinds.v[b->groups.v[g].kind].chosen)
        item = (block_item){.line = -1, .group = (int32_t)g, .chained = 1};
    i = item.group >= 0 ? b->groups.v[item.group].end : i + 1;
    TN_TRY(tn_vec_push(b->env, &c->items, item));
  }
  return TN_OK;
}

const block_kind *block_kind_of(const block_context *c, const block_item *item) {
  return &c->b->kinds.v[c->b->groups.v[item->group].kind];
}

bool block_has_weights(const block_context *c, const block_item *item) {
  if (item->group < 0) return c->b->lines[item->line].line->has_weights;
  const block_group *g = &c->b->groups.v[item->group];
  for (int32_t i = g->first; i < g->end; i++)
    if (c->b->lines[i].line->has_weights) return true;
  return false;
}

int32_t block_results_of(const block_context *c, const block_item *item) {
  return item->group >= 0 ? block_kind_of(c, item)->n_outputs : c->b->lines[item->line].line->n_names;
}

block_ref block_result_of(const block_context *c, const block_item *item, int32_t k) {
  const blocks *b = c->b;
  if (item->group < 0) return (block_ref){item->line, k};
  const block_group *g = &b->groups.v[item->group];
  int32_t value = b->lines[g->first].first_value + block_kind_of(c, item)->outputs[k], i = g->first;
  while (i + 1 < g->end && b->lines[i + 1].first_value <= value) i++;
  return (block_ref){i, value - b->lines[i].first_value};
}

int32_t block_operands_of(const block_context *c, const block_item *item, block_ref refs[BLOCK_MOST_INPUTS]) {
  const blocks *b = c->b;
  if (item->group >= 0) {
    const block_group *g = &b->groups.v[item->group];
    for (int32_t i = 0; i < g->n_inputs; i++) refs[i] = g->inputs[block_kind_of(c, item)->order[i]];
    return g->n_inputs;
  }
  const block_line *line = &b->lines[item->line];
  int32_t n = 0;
  if (line->line->computes || line->line->n_operands > BLOCK_MOST_INPUTS) return -1;
  for (int32_t t = line->first_token; t < line->end_token; t++) {
    const block_token *token = &b->tokens.v[t];
    if (token->operand < 0) continue;
    bool plain =
        token->kind == BLOCK_VALUE && token->length == (int32_t)strlen(line->line->operands[token->operand]);
    if (!plain) return -1;
    refs[n++] = token->ref;
  }
  return n;
}
