/* core/onnx/blocks/texts.c: see blocks.h. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"

const char *block_text_of(const block_context *c, block_ref ref) {
  const blocks *b = c->b;
  const char *text = NULL;
  if (ref.line >= c->first && ref.line < c->end)
    text = c->local[block_value(b, ref) - b->lines[c->first].first_value];
  else if (c->group == NULL)
    text = block_value_name(b, ref);
  for (int32_t i = 0; text == NULL && c->group != NULL && i < c->group->n_inputs; i++)
    if (c->group->inputs[i].line == ref.line && c->group->inputs[i].result == ref.result)
      text = c->kind->input_names[i];
  return text != NULL ? text : "?";
}

/* Whether the first dimension of the block's first input is the batch. */
static bool text_has_batch(const block_context *c) {
  const onnx_import *m = c->b->m;
  const char *name = block_value_name(c->b, c->group->inputs[c->kind->order[0]]);
  const tn_type *type = m->model != NULL ? tn_growing_type(m->model, name) : NULL;
  return type != NULL && type->rank > 0 && type->dims[0] == ONNX_BATCH && !m->whole;
}

static void text_add_value(const block_context *c, const block_token *token, tn_text *text) {
  bool of_input = token->of_dim && token->ref.line < 0 && c->group != NULL;
  if (of_input && text_has_batch(c))
    tn_text_add(text, c->kind->input_names[c->kind->order[0]]);
  else if (of_input)
    tn_text_addf(text, "data.%s", block_value_name(c->b, token->ref));
  else
    tn_text_add(text, block_text_of(c, token->ref));
}

/* Whether a number stands between brackets and commas, so that a product in its place needs no brackets. */
static bool text_is_apart(const block_token *token, const char *start) {
  const char *at = token->at, *end = at + token->length;
  bool begins =
      at == start || strchr("(=[", at[-1]) != NULL || (at - start > 1 && at[-1] == ' ' && at[-2] == ',');
  return begins && strchr(",)]", *end) != NULL; /* or the end of the text */
}

static block_number text_number(const block_context *c, int32_t number) {
  if (c->kind == NULL) return (block_number){-1, 1};
  return c->kind->numbers[number - c->b->lines[c->first].first_number];
}

/* A number of the model as the section has it. */
static void text_add_number(const block_context *c, int32_t number, bool apart, tn_text *text) {
  const blocks *b = c->b;
  const block_token *token = &b->tokens.v[b->numbers.v[number]];
  block_number own = text_number(c, number);
  if (own.arg < 0) {
    tn_text_addn(text, token->at, (size_t)token->length);
    return;
  }
  const char *name = c->kind->args[own.arg].name;
  const char *open = apart || own.factor == 1 ? "" : "(", *close = apart || own.factor == 1 ? "" : ")";
  if (own.factor == 0) tn_text_addf(text, "%s%s // 2%s", open, name, close);
  if (own.factor == 1) tn_text_add(text, name);
  if (own.factor > 1) tn_text_addf(text, "%s%d * %s%s", open, own.factor, name, close);
}

const char *block_part_of(const block_context *c, int32_t i, int32_t operand) {
  const blocks *b = c->b;
  const block_line *line = &b->lines[i];
  tn_text text = tn_text_new(b->env);
  const char *start = operand < 0 ? line->line->call : line->line->operands[operand];
  int32_t number = line->first_number;
  bool plain = true; /* a name behind an arrow is a value, so the number in brackets is an expression */
  for (int32_t t = line->first_token; t < line->end_token; t++) {
    const block_token *token = &b->tokens.v[t];
    bool is_number = token->kind == BLOCK_NUMBER;
    bool here = token->operand == operand && (!token->hidden || text_number(c, number).arg >= 0);
    bool whole =
        here && is_number && operand >= 0 && token->length == (int32_t)strlen(line->line->operands[operand]);
    plain = plain && !whole;
    if (here && token->kind == BLOCK_TEXT) tn_text_addn(&text, token->at, (size_t)token->length);
    if (here && token->kind == BLOCK_VALUE) text_add_value(c, token, &text);
    if (here && is_number) text_add_number(c, number, text_is_apart(token, start), &text);
    number += is_number;
  }
  bool is_name = !plain && text.v != NULL && (isalpha((unsigned char)text.v[0]) || text.v[0] == '_');
  const char *kept = tn_arena_printf(b->arena, is_name ? "(%s)" : "%s", text.v != NULL ? text.v : "");
  tn_text_free(&text);
  return kept;
}

static const char *text_use_call(const block_context *c, const block_item *item) {
  const blocks *b = c->b;
  const block_kind *kind = block_kind_of(c, item);
  const block_group *g = &b->groups.v[item->group];
  tn_text args = tn_text_new(b->env), one = tn_text_new(b->env);
  for (int32_t a = 0; a < kind->n_args; a++) {
    tn_text_free(&one);
    one = tn_text_new(b->env);
    text_add_number(c, b->lines[g->first].first_number + kind->args[a].number, true, &one);
    bool standard = kind->args[a].standard != NULL;
    if (one.v == NULL || (standard && strcmp(one.v, kind->args[a].standard) == 0)) continue;
    tn_text_addf(&args, "%s", args.n > 0 ? ", " : "(");
    if (standard) tn_text_addf(&args, "%s=", kind->args[a].name);
    tn_text_add(&args, one.v);
  }
  const char *call =
      tn_arena_printf(b->arena, "%s%s%s", kind->name, args.v != NULL ? args.v : "", args.n > 0 ? ")" : "");
  tn_text_free(&args);
  tn_text_free(&one);
  return call;
}

const char *block_call_of(const block_context *c, const block_item *item) {
  return item->group >= 0 ? text_use_call(c, item) : block_part_of(c, item->line, -1);
}
