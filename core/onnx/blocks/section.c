/* core/onnx/blocks/section.c: see blocks.h. */
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* ---- lines ---- */

static tn_status section_add_operands(const block_context *c, const block_item *item, onnx_line *line) {
  const blocks *b = c->b;
  block_ref refs[BLOCK_MOST_INPUTS];
  bool use = item->group >= 0;
  int32_t n = use ? block_operands_of(c, item, refs) : b->lines[item->line].line->n_operands;
  line->n_operands = n;
  line->operands = tn_arena_alloc(b->arena, (size_t)n * sizeof *line->operands + 1);
  if (line->operands == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    line->operands[i] = use ? block_text_of(c, refs[i]) : block_part_of(c, item->line, i);
    if (line->operands[i] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

static tn_status section_add_names(const block_context *c, const block_item *item, onnx_line *line) {
  tn_text names = tn_text_new(c->b->env);
  const block_item *last = item + item->chained - 1;
  line->n_names = block_results_of(c, last);
  for (int32_t k = 0; k < line->n_names; k++) {
    const char *own = block_text_of(c, block_result_of(c, last, k));
    tn_text_addf(&names, "%s%s", k > 0 ? ", " : "", k == 0 && item->names != NULL ? item->names : own);
  }
  line->names = names.v != NULL ? tn_arena_strdup(c->b->arena, names.v) : NULL;
  tn_text_free(&names);
  return line->names != NULL ? TN_OK : TN_ENOMEM;
}

enum { SECTION_WIDTH = 100 };

/* The calls of a chain, equal ones once: "block(64, stride=2), block(64) * 2". */
static const char *section_chain_call(const block_context *c, const block_item *item) {
  tn_text text = tn_text_new(c->b->env);
  size_t row = 0;
  for (int32_t i = 0; i < item->chained;) {
    const char *call = block_call_of(c, item + i);
    int32_t n = 1;
    while (call != NULL && i + n < item->chained && tn_text_equal(call, block_call_of(c, item + i + n))) n++;
    bool wraps = i > 0 && text.n - row + strlen(call != NULL ? call : "") > SECTION_WIDTH;
    if (i > 0) tn_text_add(&text, wraps ? ",\n            " : ", ");
    if (wraps) row = text.n;
    tn_text_add(&text, call != NULL ? call : "");
    if (n > 1) tn_text_addf(&text, " * %d", n);
    i += n;
  }
  const char *kept = text.v != NULL ? tn_arena_strdup(c->b->arena, text.v) : NULL;
  tn_text_free(&text);
  return kept;
}

static tn_status section_add_line(const block_context *c, const block_item *item, onnx_line *line) {
  bool chain = item->chained > 1;
  *line = (onnx_line){.value = item->value,
                      .computes = item->line >= 0 && c->b->lines[item->line].line->computes,
                      .has_weights = chain || block_has_weights(c, item)};
  line->call = chain ? section_chain_call(c, item) : block_call_of(c, item);
  if (line->call == NULL) return TN_ENOMEM;
  TN_TRY(section_add_names(c, item, line));
  return line->computes ? TN_OK : section_add_operands(c, item, line);
}

static tn_status section_add_lines(const block_context *c, onnx_section *s) {
  s->lines = tn_arena_alloc(c->b->arena, c->items.n * sizeof *s->lines + 1);
  if (s->lines == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < c->items.n; i++)
    if (c->items.v[i].chained > 0) TN_TRY(section_add_line(c, &c->items.v[i], &s->lines[s->n_lines++]));
  return TN_OK;
}

/* ---- heads ---- */

static tn_status section_add_outputs(const block_context *c, onnx_section *s) {
  const blocks *b = c->b;
  const onnx_import *m = b->m;
  s->n_outputs = c->group != NULL ? c->kind->n_outputs : (int32_t)m->outputs.n;
  s->outputs = tn_arena_alloc(b->arena, (size_t)s->n_outputs * sizeof *s->outputs + 1);
  if (s->outputs == NULL) return TN_ENOMEM;
  const block_item self = {.line = -1, .group = c->group != NULL ? (int32_t)(c->group - b->groups.v) : -1};
  for (int32_t i = 0; i < s->n_outputs; i++) {
    if (c->group != NULL) s->outputs[i] = block_text_of(c, block_result_of(c, &self, i));
    if (c->group != NULL) continue;
    int64_t found = tn_name_index_find(&b->values, m->outputs.v[i]);
    s->outputs[i] = found != TN_NAME_INDEX_NONE ? block_text_of(c, b->value_of.v[found]) : m->outputs.v[i];
  }
  return TN_OK;
}

static tn_status section_add_lists(const block_context *c, onnx_section *s) {
  tn_text args = tn_text_new(c->b->env), inputs = tn_text_new(c->b->env);
  for (int32_t i = 0; i < c->kind->n_args; i++) {
    tn_text_addf(&args, "%s%s", i > 0 ? ", " : "", c->kind->args[i].name);
    if (c->kind->args[i].standard != NULL) tn_text_addf(&args, "=%s", c->kind->args[i].standard);
  }
  for (int32_t i = 0; i < c->group->n_inputs; i++)
    tn_text_addf(&inputs, "%s%s", i > 0 ? ", " : "", c->kind->input_names[c->kind->order[i]]);
  if (c->kind->n_args > 0) s->args = tn_arena_strdup(c->b->arena, args.v != NULL ? args.v : "");
  if (c->group->n_inputs > 1) s->inputs = tn_arena_strdup(c->b->arena, inputs.v != NULL ? inputs.v : "");
  tn_text_free(&args);
  tn_text_free(&inputs);
  return TN_OK;
}

static tn_status section_write(const block_context *c, onnx_section *s) {
  *s = (onnx_section){.input = c->b->m->input};
  if (c->group != NULL) {
    s->name = c->kind->name;
    s->input = c->kind->input_names[c->kind->order[0]];
    TN_TRY(section_add_lists(c, s));
  }
  TN_TRY(section_add_lines(c, s));
  return section_add_outputs(c, s);
}

/* ---- all sections ---- */

static tn_status section_begin(block_context *c) {
  blocks *b = c->b;
  int32_t from = c->first < b->n_lines ? b->lines[c->first].first_value : b->n_values;
  int32_t to = c->end < b->n_lines ? b->lines[c->end].first_value : b->n_values;
  c->local = tn_arena_alloc(b->arena, (size_t)(to - from) * sizeof *c->local + 1);
  if (c->local == NULL) return TN_ENOMEM;
  TN_TRY(block_find_items(c));
  TN_TRY(block_name_section(c));
  return block_find_chains(c);
}

/* The model, and a section for each kind, in the order of their lines. */
static tn_status section_open_all(blocks *b, block_context *all, int32_t *n) {
  all[(*n)++] = (block_context){.b = b, .end = b->n_lines};
  for (size_t i = 0; i < b->groups.n; i++) {
    const block_group *g = &b->groups.v[i];
    if (g->kind < 0 || !b->kinds.v[g->kind].chosen || b->kinds.v[g->kind].group != (int32_t)i) continue;
    all[(*n)++] =
        (block_context){.b = b, .group = g, .kind = &b->kinds.v[g->kind], .first = g->first, .end = g->end};
  }
  for (int32_t i = 0; i < *n; i++) {
    all[i].used = tn_name_index_new(b->env);
    all[i].words = tn_name_index_new(b->env);
  }
  for (int32_t i = 0; i < *n; i++) TN_TRY(section_begin(&all[i]));
  return TN_OK;
}

static void section_close(block_context *c) {
  tn_name_index_free(&c->used);
  tn_name_index_free(&c->words);
  tn_vec_free(c->b->env, &c->items);
}

tn_status block_write_sections(blocks *b, onnx_section **sections, int32_t *n) {
  size_t most = b->kinds.n + 1;
  block_context *all = tn_arena_alloc(b->arena, most * sizeof *all);
  *sections = tn_arena_alloc(b->arena, most * sizeof **sections);
  if (all == NULL || *sections == NULL) return TN_ENOMEM;
  *n = 0;
  tn_status status = section_open_all(b, all, n);
  for (int32_t i = 0; status == TN_OK && i < *n; i++) status = section_write(&all[i], &(*sections)[i]);
  for (int32_t i = 0; i < *n; i++) section_close(&all[i]);
  return status;
}
