/* core/onnx/blocks/groups.c: see blocks.h. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* ---- the lines of a module ---- */

typedef struct group_stack {
  int32_t open[BLOCK_MOST_DEPTH]; /* groups, the outermost first */
  int32_t n;
  tn_name_index paths; /* of all groups */
  TN_VEC(int32_t) by_path;
} group_stack;

static tn_status group_open(blocks *b, group_stack *s, const char *path, size_t n, int32_t line) {
  block_group group = {.path = tn_arena_printf(b->arena, "%.*s", (int)n, path),
                       .first = line,
                       .parent = s->n > 0 ? s->open[s->n - 1] : -1,
                       .kind = 0,
                       .next = -1};
  if (group.path == NULL) return TN_ENOMEM;
  int64_t old = tn_name_index_find(&s->paths, group.path);
  if (old != TN_NAME_INDEX_NONE) {
    group.kind = b->groups.v[s->by_path.v[old]].kind = -1; /* a name is given once */
  } else {
    TN_TRY(tn_name_index_add(&s->paths, group.path));
    TN_TRY(tn_vec_push(b->env, &s->by_path, (int32_t)b->groups.n));
  }
  TN_TRY(tn_vec_push(b->env, &b->groups, group));
  s->open[s->n++] = (int32_t)b->groups.n - 1;
  return TN_OK;
}

/* Whether a line with parameters has the path of the group, which it could not have inside. */
static bool group_is_line(const blocks *b, const block_group *g) {
  int64_t i = tn_name_index_find(&b->values, g->path);
  return i != TN_NAME_INDEX_NONE && b->value_of.v[i].line >= 0 &&
         b->lines[b->value_of.v[i].line].line->has_weights;
}

static void group_close(blocks *b, group_stack *s, int32_t end) {
  block_group *g = &b->groups.v[s->open[--s->n]];
  g->end = end;
  if (end - g->first < BLOCK_LEAST_LINES || group_is_line(b, g)) g->kind = -1;
}

static tn_status group_take_line(blocks *b, group_stack *s, int32_t i) {
  const char *scope = b->lines[i].scope;
  while (s->n > 0 && !block_is_within(scope, b->groups.v[s->open[s->n - 1]].path)) group_close(b, s, i);
  size_t n = s->n > 0 ? strlen(b->groups.v[s->open[s->n - 1]].path) : 0;
  while (scope[n] != '\0' && s->n < BLOCK_MOST_DEPTH) {
    n += scope[n] == '.';
    n += strcspn(scope + n, ".");
    TN_TRY(group_open(b, s, scope, n, i));
  }
  return TN_OK;
}

tn_status block_find_groups(blocks *b) {
  group_stack s = {.n = 0, .paths = tn_name_index_new(b->env)};
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < b->n_lines; i++) status = group_take_line(b, &s, i);
  while (s.n > 0) group_close(b, &s, b->n_lines);
  tn_name_index_free(&s.paths);
  tn_vec_free(b->env, &s.by_path);
  return status;
}

/* ---- groups that are alike ---- */

static int32_t group_input(block_group *g, block_ref ref) {
  for (int32_t i = 0; i < g->n_inputs; i++)
    if (g->inputs[i].line == ref.line && g->inputs[i].result == ref.result) return i;
  if (g->n_inputs == BLOCK_MOST_INPUTS) return -1;
  g->inputs[g->n_inputs] = ref;
  return g->n_inputs++;
}

/* Whether an expression of line i reads a value whose name in the block begins with a digit, which would be
 * a number there. */
static bool group_reads_digit(const blocks *b, const block_group *g, int32_t i, const block_token *token) {
  const block_line *from = &b->lines[token->ref.line], *line = &b->lines[i];
  const char *path = from->line->has_weights ? from->names[0] : from->scope;
  if (token->operand >= 0 && token->length == (int32_t)strlen(line->line->operands[token->operand]))
    return false;
  if (!block_is_within(path, g->path) || strcmp(path, g->path) == 0) return false;
  const char *below = block_below(path, g->path);
  size_t n = strcspn(below, ".");
  bool apart = !block_is_within(line->scope, g->path) || strcmp(line->scope, g->path) == 0 ||
               strncmp(block_below(line->scope, g->path), below, n) != 0;
  return isdigit((unsigned char)below[0]) && (apart || below[n] == '\0');
}

/* A token as the kind has it: any number, and values by their place in the group. */
static bool group_add_token(const blocks *b, block_group *g, int32_t i, const block_token *token,
                            tn_text *text) {
  if (token->kind == BLOCK_TEXT) tn_text_addn(text, token->at, (size_t)token->length);
  if (token->kind == BLOCK_NUMBER) tn_text_add(text, "#");
  if (token->kind != BLOCK_VALUE) return true;
  bool inside = token->ref.line >= g->first;
  bool whole = token->of_dim && token->ref.line < 0;
  if (inside && group_reads_digit(b, g, i, token)) return false;
  int32_t input = inside || whole ? 0 : group_input(g, token->ref);
  if (inside) tn_text_addf(text, "$%d.%d", token->ref.line - g->first, token->ref.result);
  if (whole) tn_text_addf(text, "^%d", token->ref.line);
  if (!inside && !whole) tn_text_addf(text, "%%%d", input);
  return input >= 0;
}

/* The text that groups of a kind have in common. false: the group can be no block. */
static bool group_describe(const blocks *b, block_group *g, tn_text *text) {
  g->n_inputs = 0;
  for (int32_t i = g->first; i < g->end; i++) {
    const block_line *line = &b->lines[i];
    int32_t operand = -1;
    tn_text_addf(text, "%d%s ", line->line->n_names, line->line->computes ? "=" : ":");
    const char *own = line->line->has_weights ? block_below(line->names[0], g->path) : "";
    if (onnx_is_taken(own)) return false;
    tn_text_addf(text, "%s ", own);
    for (int32_t t = line->first_token; t < line->end_token; t++) {
      const block_token *token = &b->tokens.v[t];
      if (token->operand != operand) tn_text_add(text, ",");
      operand = token->operand;
      if (!group_add_token(b, g, i, token, text)) return false;
    }
    tn_text_add(text, "\n");
  }
  return g->n_inputs > 0;
}

static tn_status group_join(blocks *b, tn_name_index *texts, int32_t number, const char *text) {
  block_group *g = &b->groups.v[number];
  int64_t found = tn_name_index_find(texts, text);
  if (found == TN_NAME_INDEX_NONE) {
    g->kind = (int32_t)b->kinds.n;
    const char *kept = tn_arena_strdup(b->arena, text);
    if (kept == NULL) return TN_ENOMEM;
    TN_TRY(tn_name_index_add(texts, kept));
    return tn_vec_push(b->env, &b->kinds,
                       ((block_kind){.head = number, .group = number, .last = number, .count = 1}));
  }
  block_kind *kind = &b->kinds.v[found];
  b->groups.v[kind->last].next = number;
  kind->last = number;
  kind->count++;
  g->kind = (int32_t)found;
  return TN_OK;
}

/* How many groups that may be blocks have so many lines: a group alone in this has no equal. */
static tn_status group_count_sizes(const blocks *b, int32_t **sizes) {
  *sizes = tn_arena_alloc(b->arena, ((size_t)b->n_lines + 1) * sizeof **sizes);
  if (*sizes == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < b->groups.n; i++)
    if (b->groups.v[i].kind >= 0) (*sizes)[b->groups.v[i].end - b->groups.v[i].first]++;
  return TN_OK;
}

static tn_status group_find_kind(blocks *b, tn_name_index *texts, int32_t number, bool alone) {
  block_group *g = &b->groups.v[number];
  tn_text text = tn_text_new(b->env);
  bool may = g->kind >= 0 && !alone && group_describe(b, g, &text);
  g->kind = -1;
  tn_status status = text.failed ? TN_ENOMEM : may ? group_join(b, texts, number, text.v) : TN_OK;
  tn_text_free(&text);
  return status;
}

tn_status block_find_kinds(blocks *b) {
  tn_name_index texts = tn_name_index_new(b->env);
  int32_t *sizes = NULL;
  tn_status status = group_count_sizes(b, &sizes);
  for (size_t i = 0; status == TN_OK && i < b->groups.n; i++) {
    bool alone = sizes[b->groups.v[i].end - b->groups.v[i].first] < 2;
    status = group_find_kind(b, &texts, (int32_t)i, alone);
  }
  tn_name_index_free(&texts);
  return status;
}
