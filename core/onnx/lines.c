/* core/onnx/lines.c: lines of the model: each is added to the growing model, and bound to results of its
 * node.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/onnx/import.h"

/* Whether a line has the size of the batch as a number, which another batch would not have. */
static bool line_counts_samples(const onnx_import *m, const char *text) {
  for (const char *at = text; *at != '\0';) {
    bool word = isalnum((unsigned char)*at) || *at == '_' || *at == '.';
    size_t length = word ? strcspn(at, " ,:;()[]+-*/%<>=!") : 1, digits = strspn(at, "0123456789");
    if (word && digits == length && digits < 18 && onnx_is_batch(m, strtoll(at, NULL, 10))) return true;
    at += length > 0 ? length : 1;
  }
  return false;
}

static tn_status line_add(onnx_import *m, const onnx_line *line) {
  const onnx_use n = {m, NULL, 0};
  if (line_counts_samples(m, line->call)) return ONNX_REFUSE(&n, "the size of the batch as a number");
  tn_text text = tn_text_new(m->env);
  tn_text_addf(&text, line->computes ? "%s = %s" : "%s: %s", line->names, line->call);
  for (int32_t i = 0; i < line->n_operands; i++)
    tn_text_addf(&text, "%s%s", i == 0 ? " <- " : ", ", line->operands[i]);
  tn_status status = text.failed ? TN_ENOMEM : tn_growing_line(m->model, text.v);
  tn_text_free(&text);
  if (status != TN_OK) return status;
  TN_TRY(tn_vec_push(m->env, &m->lines, *line));
  m->lines.v[m->lines.n - 1].scope = m->scope;
  return TN_OK;
}

tn_status onnx_add_line(onnx_import *m, const char *name, const char *expression) {
  return line_add(m, &(onnx_line){.names = name, .n_names = 1, .call = expression, .computes = true});
}

static tn_status line_operands(const onnx_use *n, const char *const *given, int32_t count, onnx_line *line) {
  line->operands = tn_arena_alloc(&n->m->arena, (size_t)count * sizeof *line->operands + 1);
  if (line->operands == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < count; i++) line->operands[i] = given[i];
  line->n_operands = count;
  return TN_OK;
}

/* Whether another line has the result already. */
static bool result_is_bound(const onnx_use *n, int32_t k) {
  const onnx_value *value = onnx_find(n->m, n->node->out[k]);
  return value != NULL && value->line != NULL;
}

/* The names of a line with a name for each result of the node. */
static tn_status line_names(const onnx_use *n, onnx_line *line, const char **names) {
  tn_text text = tn_text_new(n->m->env);
  const char *stem = onnx_name(n);
  int32_t last = 0;
  for (int32_t k = 0; k < n->node->n_out; k++)
    if (onnx_wants(n, k) && !result_is_bound(n, k)) last = k;
  for (int32_t k = 0; k <= last && stem != NULL; k++) {
    names[k] = k == 0 ? stem : onnx_unused(n->m, onnx_print(n, "%s_%d", stem, k));
    tn_text_addf(&text, "%s%s", k > 0 ? ", " : "", names[k]);
  }
  line->n_names = last + 1;
  line->names = text.v != NULL ? tn_arena_strdup(&n->m->arena, text.v) : NULL;
  tn_text_free(&text);
  return line->names != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status line_bind(const onnx_use *n, const onnx_line *line, const char *const *names) {
  for (int32_t k = 0; k < line->n_names; k++)
    if (n->node->out[k][0] != '\0' && !result_is_bound(n, k)) TN_TRY(onnx_bind(n, k, names[k]));
  return TN_OK;
}

static tn_status line_emit(const onnx_use *n, onnx_line *line, const char *const *operands, int32_t count) {
  const char *names[ONNX_MOST_OPERANDS];
  if (line->call == NULL) return TN_ENOMEM;
  if (n->node->n_out > ONNX_MOST_OPERANDS || n->node->n_in > ONNX_MOST_OPERANDS)
    return ONNX_REFUSE(n, "more than %d operands or results", ONNX_MOST_OPERANDS);
  if (!line->computes) TN_TRY(line_operands(n, operands, count, line));
  TN_TRY(line_names(n, line, names));
  TN_TRY(line_add(n->m, line));
  return line_bind(n, line, names);
}

tn_status onnx_emit_texts(const onnx_use *n, const char *const *operands, int32_t count, const char *call) {
  onnx_line line = {.call = call};
  return line_emit(n, &line, operands, count);
}

tn_status onnx_compute(const onnx_use *n, const char *expression, ...) {
  va_list args;
  va_start(args, expression);
  onnx_line line = {.call = onnx_print_all(n, expression, args), .computes = true};
  va_end(args);
  return line_emit(n, &line, NULL, 0);
}

const char *onnx_let(const onnx_use *n, const char *expression, ...) {
  va_list args;
  va_start(args, expression);
  const char *text = onnx_print_all(n, expression, args), *name = onnx_name(n);
  va_end(args);
  return text != NULL && name != NULL && onnx_add_line(n->m, name, text) == TN_OK ? name : NULL;
}

const char *onnx_between(const onnx_use *n, const char *const *operands, int32_t count, const char *call,
                         ...) {
  va_list args;
  va_start(args, call);
  onnx_line line = {.call = onnx_print_all(n, call, args), .n_names = 1, .names = onnx_name(n)};
  va_end(args);
  if (line.call == NULL || line.names == NULL || line_operands(n, operands, count, &line) != TN_OK)
    return NULL;
  return line_add(n->m, &line) == TN_OK ? line.names : NULL;
}

tn_status onnx_add_layer(onnx_import *m, const char *names, int32_t n_names, const char *const *operands,
                         int32_t n_operands, const char *call) {
  onnx_line line = {.names = names, .n_names = n_names, .call = call, .has_weights = true};
  line.operands = tn_arena_alloc(&m->arena, (size_t)n_operands * sizeof *operands + 1);
  if (line.operands == NULL) return TN_ENOMEM;
  if (n_operands > 0) memcpy(line.operands, operands, (size_t)n_operands * sizeof *operands);
  line.n_operands = n_operands;
  return line_add(m, &line);
}

const char *onnx_size_text(const onnx_use *n, int64_t size) {
  if (n->m->whole || size == 0 || size % ONNX_BATCH != 0) return onnx_print(n, "%lld", (long long)size);
  if (size == ONNX_BATCH) return onnx_print(n, "dim(%s, 0)", n->m->input);
  return onnx_print(n, "dim(%s, 0) * %lld", n->m->input, (long long)(size / ONNX_BATCH));
}
