/* core/onnx/blocks/tokens.c: see blocks.h. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* ---- names of values ---- */

static tn_status token_add_value(blocks *b, const char *name, block_ref ref) {
  if (name == NULL) return TN_ENOMEM;
  if (tn_name_index_find(&b->values, name) != TN_NAME_INDEX_NONE) return TN_OK;
  TN_TRY(tn_name_index_add(&b->values, name));
  return tn_vec_push(b->env, &b->value_of, ref);
}

/* The names of "a, b". */
static tn_status token_split_names(blocks *b, int32_t i) {
  block_line *line = &b->lines[i];
  const char *at = line->line->names;
  line->names = tn_arena_alloc(b->arena, (size_t)line->line->n_names * sizeof *line->names + 1);
  if (line->names == NULL) return TN_ENOMEM;
  for (int32_t k = 0; k < line->line->n_names; k++) {
    size_t n = strcspn(at, ", ");
    line->names[k] = tn_arena_printf(b->arena, "%.*s", (int)n, at);
    TN_TRY(token_add_value(b, line->names[k], (block_ref){i, k}));
    at += n;
    at += strspn(at, ", ");
  }
  return TN_OK;
}

const char *block_value_name(const blocks *b, block_ref ref) {
  return ref.line < 0 ? b->m->inputs.v[-1 - ref.line].name : b->lines[ref.line].names[ref.result];
}

/* ---- texts ---- */

typedef struct token_reader {
  blocks *b;
  const char *start, *at;
  int32_t operand;
  bool layer; /* the call of a layer, whose words are options but in dim(VALUE, 0) */
} token_reader;

static tn_status token_push(token_reader *r, size_t n, int32_t kind, bool of_dim, block_ref ref) {
  blocks *b = r->b;
  block_token *last = b->tokens.n > 0 ? &b->tokens.v[b->tokens.n - 1] : NULL;
  bool joins = kind == BLOCK_TEXT && r->at != r->start && last != NULL && last->kind == BLOCK_TEXT &&
               last->at + last->length == r->at;
  if (joins)
    last->length += (int32_t)n;
  else
    TN_TRY(tn_vec_push(b->env, &b->tokens,
                       ((block_token){r->at, (int32_t)n, kind, r->operand, of_dim, false, ref})));
  if (kind == BLOCK_NUMBER) TN_TRY(tn_vec_push(b->env, &b->numbers, (int32_t)b->tokens.n - 1));
  r->at += n;
  return TN_OK;
}

/* "64", "0.1", "1e-05". */
static size_t token_number_length(const char *at) {
  size_t n = strspn(at, "0123456789");
  if (n > 0 && at[n] == '.' && isdigit((unsigned char)at[n + 1])) n += 1 + strspn(at + n + 1, "0123456789");
  if (n == 0 || at[n] != 'e') return n;
  size_t sign = at[n + 1] == '-' || at[n + 1] == '+' ? 1 : 0,
         digits = strspn(at + n + 1 + sign, "0123456789");
  return digits > 0 ? n + 1 + sign + digits : n;
}

/* Whether the text in front of the word is "dim(" or "dims(". */
static bool token_is_of_dim(const token_reader *r) {
  size_t n = (size_t)(r->at - r->start);
  if (n >= 4 && memcmp(r->at - 4, "dim(", 4) == 0) return n == 4 || !isalnum((unsigned char)r->at[-5]);
  return n >= 5 && memcmp(r->at - 5, "dims(", 5) == 0 && (n == 5 || !isalnum((unsigned char)r->at[-6]));
}

/* Whether the word is an option's value, as in dtype=f32. */
static bool token_is_option(const token_reader *r) {
  size_t n = (size_t)(r->at - r->start);
  return n >= 2 && r->at[-1] == '=' && (isalnum((unsigned char)r->at[-2]) || r->at[-2] == '_');
}

/* A word is the name of a value, or a part of the text. */
static tn_status token_read_word(token_reader *r, size_t n) {
  const blocks *b = r->b;
  char next = r->at[n];
  bool of_dim = token_is_of_dim(r), assigns = next == '=' && r->at[n + 1] != '=';
  bool may = r->layer ? of_dim : next != '(' && !assigns && !token_is_option(r);
  const char *word = may ? tn_arena_printf(b->arena, "%.*s", (int)n, r->at) : "";
  if (word == NULL) return TN_ENOMEM;
  int64_t i = may ? tn_name_index_find(&b->values, word) : TN_NAME_INDEX_NONE;
  if (i == TN_NAME_INDEX_NONE) return token_push(r, n, BLOCK_TEXT, false, (block_ref){0, 0});
  return token_push(r, n, BLOCK_VALUE, of_dim, b->value_of.v[i]);
}

static tn_status token_read_until(token_reader *r, const char *end) {
  while (r->at < end) {
    size_t digits = token_number_length(r->at), n = onnx_name_length(r->at);
    if (digits > 0)
      TN_TRY(token_push(r, digits, BLOCK_NUMBER, false, (block_ref){0, 0}));
    else if (n > 0)
      TN_TRY(token_read_word(r, n));
    else
      TN_TRY(token_push(r, 1, BLOCK_TEXT, false, (block_ref){0, 0}));
  }
  return TN_OK;
}

static tn_status token_read(blocks *b, const char *text, int32_t operand, bool layer) {
  token_reader r = {b, text, text, operand, layer};
  return token_read_until(&r, text + strlen(text));
}

/* ---- options that a convolution leaves out ---- */

/* In the order in which the importer writes them, with their defaults. */
static const char *const token_options[] = {", stride=1)", ", padding=0)", ", dilation=1)", ", groups=1)"};

/* The end of an option's value. */
static const char *token_option_end(const char *at) {
  int32_t depth = 0;
  for (; *at != '\0' && (depth > 0 || (*at != ',' && *at != ')')); at++) {
    depth += *at == '[' || *at == '(';
    depth -= *at == ']' || *at == ')';
  }
  return at;
}

static tn_status token_hide(blocks *b, const char *option) {
  int32_t n = (int32_t)strlen(option) - 2;
  block_token text = {.at = option, .length = n, .kind = BLOCK_TEXT, .operand = -1, .hidden = true},
              one = text;
  one.at = option + n;
  one.length = 1;
  one.kind = BLOCK_NUMBER;
  TN_TRY(tn_vec_push(b->env, &b->tokens, text));
  TN_TRY(tn_vec_push(b->env, &b->tokens, one));
  return tn_vec_push(b->env, &b->numbers, (int32_t)b->tokens.n - 1);
}

/* Convolutions that differ in an option are alike, although one of them leaves it out. */
static tn_status token_read_call(blocks *b, const char *call, bool computes) {
  const char *kernel = strstr(call, ", kernel=");
  bool layer = !computes && kernel != NULL && tn_text_starts(call, "conv");
  token_reader r = {b, call, call, -1, !computes};
  if (!layer) return token_read(b, call, -1, !computes);
  TN_TRY(token_read_until(&r, token_option_end(kernel + 2)));
  for (size_t i = 0; i < sizeof token_options / sizeof *token_options; i++) {
    const char *option = token_options[i];
    bool given = strncmp(r.at, option, strlen(option) - 2) == 0;
    TN_TRY(given ? token_read_until(&r, token_option_end(r.at + 2)) : token_hide(b, option));
  }
  return token_read_until(&r, call + strlen(call));
}

static tn_status token_read_line(blocks *b, block_line *line) {
  line->first_token = (int32_t)b->tokens.n;
  line->first_number = (int32_t)b->numbers.n;
  TN_TRY(token_read_call(b, line->line->call, line->line->computes));
  for (int32_t k = 0; k < line->line->n_operands; k++)
    TN_TRY(token_read(b, line->line->operands[k], k, false));
  line->end_token = (int32_t)b->tokens.n;
  return TN_OK;
}

/* ---- uses ---- */

static void token_note_uses(blocks *b) {
  for (int32_t i = 0; i < b->n_lines; i++)
    for (int32_t t = b->lines[i].first_token; t < b->lines[i].end_token; t++)
      if (b->tokens.v[t].kind == BLOCK_VALUE && b->tokens.v[t].ref.line >= 0)
        b->last_use[block_value(b, b->tokens.v[t].ref)] = i;
  for (size_t i = 0; i < b->m->outputs.n; i++) {
    int64_t found = tn_name_index_find(&b->values, b->m->outputs.v[i]);
    if (found != TN_NAME_INDEX_NONE && b->value_of.v[found].line >= 0)
      b->last_use[block_value(b, b->value_of.v[found])] = INT32_MAX;
  }
}

tn_status block_read_tokens(blocks *b) {
  tn_name_index_free(&b->values);
  b->value_of.n = b->tokens.n = b->numbers.n = 0;
  b->n_values = 0;
  for (size_t i = 0; i < b->m->inputs.n; i++)
    TN_TRY(token_add_value(b, b->m->inputs.v[i].name, (block_ref){-1 - (int32_t)i, 0}));
  for (int32_t i = 0; i < b->n_lines; i++) {
    TN_TRY(token_split_names(b, i));
    b->lines[i].first_value = b->n_values;
    b->n_values += b->lines[i].line->n_names;
  }
  for (int32_t i = 0; i < b->n_lines; i++) TN_TRY(token_read_line(b, &b->lines[i]));
  b->last_use = tn_arena_alloc(b->arena, (size_t)b->n_values * sizeof *b->last_use + 1);
  if (b->last_use == NULL) return TN_ENOMEM;
  token_note_uses(b);
  return TN_OK;
}
