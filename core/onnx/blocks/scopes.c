/* core/onnx/blocks/scopes.c: see blocks.h. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* ---- paths ---- */

bool block_is_within(const char *path, const char *scope) {
  size_t n = strlen(scope);
  return n == 0 || (strncmp(path, scope, n) == 0 && (path[n] == '\0' || path[n] == '.'));
}

/* How many characters two paths have in common, in whole parts. */
static size_t scope_common(const char *a, const char *b) {
  size_t common = 0;
  for (size_t i = 0;; i++) {
    bool ends_a = a[i] == '\0' || a[i] == '.', ends_b = b[i] == '\0' || b[i] == '.';
    if (ends_a && ends_b) common = i;
    if (a[i] == '\0' || a[i] != b[i]) return common;
  }
}

/* The length of the first `depth` parts; the whole path where it has no more. */
static size_t scope_length(const char *path, int32_t depth) {
  size_t n = 0;
  for (int32_t i = 0; i < depth && path[n] != '\0'; i++) {
    if (i > 0) n++;
    n += strcspn(path + n, ".");
  }
  return n;
}

static int32_t scope_depth(const char *path) {
  int32_t n = path[0] != '\0';
  for (const char *c = path; *c != '\0'; c++) n += *c == '.';
  return n;
}

static const char *scope_cut(blocks *b, const char *path, size_t n) {
  return path[n] == '\0' ? path : tn_arena_printf(b->arena, "%.*s", (int)n, path);
}

/* The module around a line with parameters: "layer1.0" of "layer1.0.conv1". */
static const char *scope_of_name(blocks *b, const char *name) {
  const char *dot = strrchr(name, '.');
  return dot != NULL ? tn_arena_printf(b->arena, "%.*s", (int)(dot - name), name) : "";
}

/* ---- lines whose node names no module ---- */

/* Upwards to what all operands have in common, but not out of an element of a list, "layer1.1". */
static size_t scope_rise(const char *path, size_t to) {
  size_t n = strlen(path);
  while (n > to) {
    size_t part = n;
    while (part > 0 && path[part - 1] != '.') part--;
    if (isdigit((unsigned char)path[part])) return n;
    n = part > 0 ? part - 1 : 0;
  }
  return n;
}

/* A line stands where its latest operand does. */
static const char *scope_guess(blocks *b, int32_t i) {
  const block_line *line = &b->lines[i];
  int32_t latest = -1;
  for (int32_t t = line->first_token; t < line->end_token; t++)
    if (b->tokens.v[t].kind == BLOCK_VALUE && b->tokens.v[t].ref.line > latest)
      latest = b->tokens.v[t].ref.line;
  if (latest < 0) return "";
  const char *scope = b->lines[latest].scope;
  size_t common = strlen(scope);
  for (int32_t t = line->first_token; t < line->end_token; t++) {
    const block_token *token = &b->tokens.v[t];
    if (token->kind != BLOCK_VALUE || token->ref.line < 0 || b->lines[token->ref.line].constant) continue;
    size_t n = scope_common(scope, b->lines[token->ref.line].scope);
    if (n < common) common = n;
  }
  return scope_cut(b, scope, scope_rise(scope, common));
}

static bool scope_is_constant(const blocks *b, int32_t i) {
  for (int32_t t = b->lines[i].first_token; t < b->lines[i].end_token; t++) {
    const block_token *token = &b->tokens.v[t];
    if (token->kind == BLOCK_VALUE && !(token->of_dim && token->ref.line < 0) &&
        (token->ref.line < 0 || !b->lines[token->ref.line].constant))
      return false;
  }
  return true;
}

static tn_status scope_find(blocks *b, int32_t i) {
  block_line *line = &b->lines[i];
  bool output = false;
  for (int32_t k = 0; k < line->line->n_names; k++)
    output = output || b->last_use[line->first_value + k] == INT32_MAX;
  line->constant = scope_is_constant(b, i);
  if (line->line->has_weights)
    line->scope = scope_of_name(b, line->names[0]);
  else if (output)
    line->scope = ""; /* its name is that of the output */
  else
    line->scope = line->line->scope != NULL ? line->line->scope : scope_guess(b, i);
  if (line->scope != NULL)
    line->scope = scope_cut(b, line->scope, scope_length(line->scope, BLOCK_MOST_DEPTH));
  return line->scope != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- constants ---- */

/* The lines that read a constant. */
typedef struct scope_use {
  const char *scope; /* the module that has all of them; NULL: no line reads it */
  int32_t first;     /* the first line that is no constant */
} scope_use;

/* A constant belongs to the module that has all lines that read it. */
static tn_status scope_gather(blocks *b, scope_use *uses, int32_t i) {
  block_line *line = &b->lines[i];
  if (line->constant) {
    const char *all = uses[i].scope != NULL ? uses[i].scope : "";
    for (int32_t k = 0; k < line->line->n_names; k++)
      if (b->last_use[line->first_value + k] == INT32_MAX) all = "";
    line->scope = line->line->has_weights ? scope_cut(b, line->scope, scope_common(line->scope, all)) : all;
    if (line->scope == NULL) return TN_ENOMEM;
  }
  int32_t first = line->constant ? uses[i].first : i;
  for (int32_t t = line->first_token; t < line->end_token; t++) {
    const block_token *token = &b->tokens.v[t];
    if (token->kind != BLOCK_VALUE || token->ref.line < 0 || !b->lines[token->ref.line].constant) continue;
    scope_use *use = &uses[token->ref.line];
    use->scope =
        use->scope == NULL ? line->scope : scope_cut(b, use->scope, scope_common(use->scope, line->scope));
    if (use->scope == NULL) return TN_ENOMEM;
    if (first < use->first) use->first = first;
  }
  return TN_OK;
}

/* starts[i * BLOCK_MOST_DEPTH + d]: the first of the lines up to i that share d + 1 parts of their modules.
 */
static void scope_find_starts(const blocks *b, int32_t *starts) {
  int32_t before = -1;
  for (int32_t i = 0; i < b->n_lines; i++) {
    if (b->lines[i].constant) continue;
    const char *scope = b->lines[i].scope, *old = before >= 0 ? b->lines[before].scope : NULL;
    size_t common = old != NULL ? scope_common(scope, old) : 0;
    for (int32_t d = 0; d < BLOCK_MOST_DEPTH; d++) {
      bool same = old != NULL && d < scope_depth(scope) && d < scope_depth(old) &&
                  scope_length(scope, d + 1) <= common;
      starts[i * BLOCK_MOST_DEPTH + d] = same ? starts[before * BLOCK_MOST_DEPTH + d] : i;
    }
    before = i;
  }
}

/* Where a constant goes: in front of the first module inside its own that reads it. */
static int32_t scope_place(const blocks *b, const scope_use *use, const int32_t *starts, int32_t i) {
  if (!b->lines[i].constant) return i;
  if (use->first >= b->n_lines) return b->n_lines;
  int32_t depth = scope_depth(b->lines[i].scope), reader = scope_depth(b->lines[use->first].scope);
  return depth < reader && depth < BLOCK_MOST_DEPTH ? starts[use->first * BLOCK_MOST_DEPTH + depth]
                                                    : use->first;
}

/* Lines in the order of their places; constants of a place come first, in their own order. */
static tn_status scope_sort(blocks *b, const int32_t *places) {
  int32_t *counts = tn_arena_alloc(b->arena, ((size_t)b->n_lines + 2) * sizeof *counts);
  block_line *sorted = tn_arena_alloc(b->arena, (size_t)b->n_lines * sizeof *sorted + 1);
  if (counts == NULL || sorted == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < b->n_lines; i++) counts[places[i] + 1]++;
  for (int32_t i = 0; i < b->n_lines; i++) counts[i + 1] += counts[i];
  for (int32_t i = 0; i < b->n_lines; i++)
    if (b->lines[i].constant) sorted[counts[places[i]]++] = b->lines[i];
  for (int32_t i = 0; i < b->n_lines; i++)
    if (!b->lines[i].constant) sorted[counts[places[i]]++] = b->lines[i];
  b->lines = sorted;
  return TN_OK;
}

tn_status block_find_scopes(blocks *b) {
  size_t n = (size_t)b->n_lines;
  scope_use *uses = tn_arena_alloc(b->arena, n * sizeof *uses + 1);
  int32_t *starts = tn_arena_alloc(b->arena, n * BLOCK_MOST_DEPTH * sizeof *starts + 1);
  int32_t *places = tn_arena_alloc(b->arena, n * sizeof *places + 1);
  if (uses == NULL || starts == NULL || places == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < b->n_lines; i++) TN_TRY(scope_find(b, i));
  for (int32_t i = 0; i < b->n_lines; i++) uses[i].first = b->n_lines;
  for (int32_t i = b->n_lines; i-- > 0;) TN_TRY(scope_gather(b, uses, i));
  scope_find_starts(b, starts);
  for (int32_t i = 0; i < b->n_lines; i++) places[i] = scope_place(b, &uses[i], starts, i);
  TN_TRY(scope_sort(b, places));
  return block_read_tokens(b);
}
