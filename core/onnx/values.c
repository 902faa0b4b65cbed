/* core/onnx/values.c: see import.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/element.h"
#include "core/onnx/import.h"

int32_t onnx_value_dtype(int32_t data_type) {
  int32_t dtype = tn_onnx_dtype(data_type);
  return dtype == TN_F16 || dtype == TN_BF16 || dtype == TN_F64 ? TN_F32 : dtype;
}

/* ---- values ---- */

onnx_value *onnx_find(const onnx_import *m, const char *name) {
  int64_t i = name[0] != '\0' ? tn_name_index_find(&m->names, name) : TN_NAME_INDEX_NONE;
  return i != TN_NAME_INDEX_NONE ? &m->values.v[i] : NULL;
}

tn_status onnx_add_value(onnx_import *m, const onnx_value *value) {
  onnx_value *old = onnx_find(m, value->name);
  if (old == NULL) {
    TN_TRY(tn_name_index_add(&m->names, value->name));
    return tn_vec_push(m->env, &m->values, *value);
  }
  onnx_value kept = *old; /* how often it is used was counted before */
  *old = *value;
  old->uses = kept.uses;
  old->user = kept.user;
  old->is_output = kept.is_output;
  return TN_OK;
}

const onnx_value *onnx_operand(const onnx_use *n, int32_t i) {
  return i < n->node->n_in ? onnx_find(n->m, n->node->in[i]) : NULL;
}

bool onnx_has(const onnx_use *n, int32_t i) { return i < n->node->n_in && n->node->in[i][0] != '\0'; }

/* Reads a small tensor. */
static tn_status value_look(onnx_import *m, onnx_value *value) {
  const tn_onnx_tensor *t = value->tensor;
  int64_t count = tn_type_count(&t->type);
  if (count > ONNX_MOST_KNOWN || t->type.dtype == TN_ANY || t->type.dtype == TN_F16 ||
      t->type.dtype == TN_BF16)
    return TN_OK;
  void *data = tn_arena_alloc(&m->arena, tn_type_bytes(&t->type) + 1);
  double *known = tn_arena_alloc(&m->arena, (size_t)count * sizeof *known + 1);
  if (data == NULL || known == NULL) return TN_ENOMEM;
  TN_TRY(tn_onnx_tensor_read(m->file, t, data));
  for (int64_t i = 0; i < count; i++) known[i] = tn_element_load(t->type.dtype, data, i);
  value->known = known;
  return TN_OK;
}

const double *onnx_peek(const onnx_use *n, int32_t i, int64_t *count) {
  onnx_value *value = i < n->node->n_in ? onnx_find(n->m, n->node->in[i]) : NULL;
  if (value == NULL) return NULL;
  if (value->known == NULL && value->tensor != NULL && value_look(n->m, value) != TN_OK)
    tn_error_clear(n->m->env);
  *count = tn_type_count(&value->type);
  return value->known;
}

const double *onnx_known(const onnx_use *n, int32_t i, int64_t *count) {
  const double *known = onnx_peek(n, i, count);
  if (known == NULL) ONNX_REFUSE(n, "operand %d depends on the inputs of the model", i);
  return known;
}

/* ---- lines ---- */

static tn_status line_add(onnx_import *m, const onnx_line *line) {
  tn_text text = tn_text_new(m->env);
  tn_text_addf(&text, line->computes ? "%s = %s" : "%s: %s", line->names, line->call);
  for (int32_t i = 0; i < line->n_operands; i++)
    tn_text_addf(&text, "%s%s", i == 0 ? " <- " : ", ", line->operands[i]);
  tn_status status = text.failed ? TN_ENOMEM : tn_growing_line(m->model, text.v);
  tn_text_free(&text);
  return status == TN_OK ? tn_vec_push(m->env, &m->lines, *line) : status;
}

/* The texts of operands: those given, or all of the node. */
static tn_status line_operands(const onnx_use *n, const char *const *given, int32_t count, onnx_line *line) {
  int32_t all = given != NULL ? count : n->node->n_in;
  line->operands = tn_arena_alloc(&n->m->arena, (size_t)all * sizeof *line->operands + 1);
  if (line->operands == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < all; i++) {
    const char *text = given != NULL ? given[i] : onnx_text_of(n, i, true);
    if (text == NULL) return onnx_failed(n);
    line->operands[line->n_operands++] = text;
  }
  return TN_OK;
}

/* The names of a line with a name for each result of the node. */
static tn_status line_names(const onnx_use *n, onnx_line *line, const char **names) {
  tn_text text = tn_text_new(n->m->env);
  const char *stem = onnx_name(n);
  int32_t last = 0;
  for (int32_t k = 0; k < n->node->n_out; k++)
    if (n->node->out[k][0] != '\0') last = k;
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
    if (n->node->out[k][0] != '\0') TN_TRY(onnx_bind(n, k, names[k]));
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

static const char *line_call(const onnx_use *n, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *call = length >= 0 ? tn_arena_alloc(&n->m->arena, (size_t)length + 1) : NULL;
  if (call != NULL) vsnprintf(call, (size_t)length + 1, format, args);
  return call;
}

tn_status onnx_emit(const onnx_use *n, const char *const *operands, int32_t count, const char *call, ...) {
  va_list args;
  va_start(args, call);
  onnx_line line = {.call = line_call(n, call, args)};
  va_end(args);
  return line_emit(n, &line, operands, count);
}

tn_status onnx_compute(const onnx_use *n, const char *expression, ...) {
  va_list args;
  va_start(args, expression);
  onnx_line line = {.call = line_call(n, expression, args), .computes = true};
  va_end(args);
  return line_emit(n, &line, NULL, 0);
}

const char *onnx_between(const onnx_use *n, const char *const *operands, int32_t count, const char *call,
                         ...) {
  va_list args;
  va_start(args, call);
  onnx_line line = {.call = line_call(n, call, args), .n_names = 1, .names = onnx_name(n)};
  va_end(args);
  if (line.call == NULL || line.names == NULL || line_operands(n, operands, count, &line) != TN_OK)
    return NULL;
  return line_add(n->m, &line) == TN_OK ? line.names : NULL;
}

/* ---- weights ---- */

static tn_status weight_add(onnx_import *m, const char *path, const tn_onnx_tensor *tensor, bool transposed) {
  const onnx_weight weight = {path, tensor, transposed};
  return path != NULL ? tn_vec_push(m->env, &m->weights, weight) : TN_ENOMEM;
}

tn_status onnx_layer(const onnx_use *n, int32_t input, const onnx_use *result,
                     const onnx_layer_weight *weights, int32_t n_weights, const char *call) {
  onnx_import *m = n->m;
  const char *path = onnx_path(n, weights, n_weights), *text = onnx_text_of(n, input, false);
  onnx_line line = {.names = path, .n_names = 1, .call = call, .has_weights = true};
  if (path == NULL || text == NULL) return onnx_failed(n);
  TN_TRY(line_operands(n, &text, 1, &line));
  TN_TRY(line_add(m, &line));
  for (int32_t i = 0; i < n_weights; i++)
    TN_TRY(weight_add(m, tn_arena_printf(&m->arena, "%s.%s", path, weights[i].name),
                      onnx_find(m, weights[i].from)->tensor, weights[i].transposed));
  return onnx_bind(result, 0, path);
}

bool onnx_is_weight(const onnx_use *n, int32_t i, int32_t rank) {
  const onnx_value *value = onnx_operand(n, i);
  return value != NULL && value->tensor != NULL && value->line == NULL && value->type.dtype == TN_F32 &&
         (rank < 0 || value->type.rank == rank);
}

/* A line for a tensor: a parameter, or a buffer, which is not trained. The model keeps floats; others are
 * cast. */
static const char *value_store(const onnx_use *n, const onnx_value *value) {
  onnx_import *m = n->m;
  const tn_onnx_tensor *t = value->tensor;
  bool trained = value->is_weight && value->type.dtype == TN_F32;
  const char *name = onnx_unused(m, onnx_tidy(m, value->name));
  onnx_line line = {.names = name, .n_names = 1, .has_weights = true};
  line.call = onnx_print(n, "%s(%s)", trained ? "param" : "buffer",
                         onnx_list_text(n, t->type.dims, t->type.rank, false));
  if (name == NULL || line_add(m, &line) != TN_OK || weight_add(m, name, t, false) != TN_OK) return NULL;
  if (value->type.dtype == TN_F32) return name;
  return onnx_between(n, &name, 1, "cast(to=%s)", tn_dtype_name(value->type.dtype));
}

/* A line for known numbers: equal ones, or those of a range. */
static const char *value_write(const onnx_use *n, const onnx_value *value) {
  int64_t count = tn_type_count(&value->type);
  const double *v = value->known, step = count > 1 ? v[1] - v[0] : 0;
  const char *dtype = tn_dtype_name(value->type.dtype);
  bool even = value->type.rank == 1 || step == 0;
  onnx_line line = {.n_names = 1, .names = onnx_unused(n->m, onnx_tidy(n->m, value->name)), .computes = true};
  for (int64_t i = 1; i < count; i++) even = even && v[i] - v[i - 1] == step;
  if (!even || count == 0) {
    ONNX_REFUSE(n, "a list of known numbers as an operand");
    return NULL;
  }
  const char *dims = onnx_list_text(n, value->type.dims, value->type.rank, false);
  if (step == 0)
    line.call = onnx_print(n, "full(%s, %s, dtype=%s)", dims, onnx_float_text(n, v[0]), dtype);
  else
    line.call = onnx_print(n, "iota(%s, dtype=%s) * %s + %s", dims, dtype, onnx_float_text(n, step),
                           onnx_float_text(n, v[0]));
  return line.names != NULL && line_add(n->m, &line) == TN_OK ? line.names : NULL;
}

/* A value gets its line when the first one reads it. */
static const char *value_line(const onnx_use *n, const char *name) {
  const onnx_value *value = onnx_find(n->m, name);
  const char *line = value->tensor != NULL ? value_store(n, value) : value_write(n, value);
  return onnx_find(n->m, name)->line = line;
}

tn_status onnx_filled(const onnx_use *n, double *number, int32_t *dtype) {
  const tn_onnx_attribute *a = onnx_attribute(n, "value");
  *number = 0;
  *dtype = TN_F32;
  if (a == NULL || a->tensor == NULL) return TN_OK;
  onnx_value value = {.tensor = a->tensor, .type = a->tensor->type};
  TN_TRY(value_look(n->m, &value));
  if (value.known == NULL || tn_type_count(&value.type) != 1)
    return ONNX_REFUSE(n, "a filled array of an unknown number");
  *number = value.known[0];
  *dtype = onnx_value_dtype(a->tensor->data_type);
  return TN_OK;
}

const char *onnx_size_text(const onnx_use *n, int64_t size) {
  return size == ONNX_BATCH ? onnx_print(n, "dim(%s, 0)", n->m->input)
                            : onnx_print(n, "%lld", (long long)size);
}

/* Whether all elements are one number that the language can write. */
static bool value_is_number(const onnx_use *n, int32_t i, double *number) {
  int64_t count;
  const onnx_value *value = onnx_operand(n, i);
  if (value->line != NULL || tn_type_count(&value->type) != 1) return false;
  const double *known = onnx_peek(n, i, &count);
  *number = known != NULL ? known[0] : 0;
  return known != NULL && !isnan(known[0]);
}

const char *onnx_text_of(const onnx_use *n, int32_t i, bool number) {
  double one;
  onnx_value *value = i < n->node->n_in ? onnx_find(n->m, n->node->in[i]) : NULL;
  if (value == NULL) {
    ONNX_REFUSE(n, "operand %d is absent", i);
    return NULL;
  }
  if (number && value_is_number(n, i, &one)) {
    bool whole = value->type.dtype != TN_F32;
    return whole ? onnx_print(n, "%.0f", one) : onnx_float_text(n, one);
  }
  return value->line != NULL ? value->line : value_line(n, value->name);
}

/* ---- results ---- */

tn_status onnx_bind(const onnx_use *n, int32_t k, const char *line) {
  const tn_type *type = tn_growing_type(n->m->model, line);
  if (type == NULL) return tn_failf(n->m->env, TN_EINTERNAL, "line '%s' has no value", line);
  return onnx_add_value(n->m, &(onnx_value){.name = n->node->out[k], .line = line, .type = *type});
}

tn_status onnx_bind_known(const onnx_use *n, int32_t k, const tn_type *type, const double *known) {
  return onnx_add_value(n->m, &(onnx_value){.name = n->node->out[k], .known = known, .type = *type});
}

tn_status onnx_pass(const onnx_use *n, int32_t i) {
  const onnx_value *from = onnx_operand(n, i);
  if (from == NULL) return ONNX_REFUSE(n, "operand %d is absent", i);
  onnx_value value = *from;
  value.name = n->node->out[0];
  return onnx_add_value(n->m, &value);
}

bool onnx_next(const onnx_use *n, const char *op, onnx_use *next) {
  const onnx_value *value = onnx_find(n->m, n->node->out[0]);
  if (value == NULL || value->uses != 1 || value->is_output) return false;
  *next = (onnx_use){n->m, &n->m->file->nodes[value->user], value->user};
  return strcmp(next->node->op, op) == 0;
}

/* ---- attributes ---- */

const tn_onnx_attribute *onnx_attribute(const onnx_use *n, const char *name) {
  for (int32_t i = 0; i < n->node->n_attributes; i++)
    if (strcmp(n->node->attributes[i].name, name) == 0) return &n->node->attributes[i];
  return NULL;
}

int64_t onnx_whole(const onnx_use *n, const char *name, int64_t otherwise) {
  const tn_onnx_attribute *a = onnx_attribute(n, name);
  return a != NULL ? a->whole : otherwise;
}

double onnx_number(const onnx_use *n, const char *name, double otherwise) {
  const tn_onnx_attribute *a = onnx_attribute(n, name);
  return a != NULL ? a->number : otherwise;
}

const char *onnx_word(const onnx_use *n, const char *name, const char *otherwise) {
  const tn_onnx_attribute *a = onnx_attribute(n, name);
  bool plain = a != NULL && a->text[0] != '\0';
  for (const char *c = plain ? a->text : ""; *c != '\0'; c++)
    plain = plain && (isalnum((unsigned char)*c) || *c == '_');
  return plain ? a->text : otherwise;
}

tn_status onnx_wholes(const onnx_use *n, const char *name, int32_t i, const int64_t **list, int32_t *count) {
  const tn_onnx_attribute *a = onnx_attribute(n, name);
  *list = a != NULL ? a->wholes : NULL;
  *count = a != NULL ? a->n_wholes : -1;
  if (i < 0 || !onnx_has(n, i)) return TN_OK;
  int64_t many;
  const double *known = onnx_known(n, i, &many);
  if (known == NULL) return onnx_failed(n);
  int64_t *v = tn_arena_alloc(&n->m->arena, (size_t)many * sizeof *v + 1);
  if (v == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < many; k++) v[k] = onnx_to_whole(known[k]);
  *list = v;
  *count = (int32_t)many;
  return TN_OK;
}
