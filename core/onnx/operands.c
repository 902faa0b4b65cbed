/* core/onnx/operands.c: operands as texts of lines. A tensor or known numbers get a line of their own when
 * the first line reads them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/element.h"
#include "core/onnx/import.h"

/* ---- tensors ---- */

static const char *value_parameter(const onnx_use *n, const char *called, const tn_onnx_tensor *t,
                                   bool trained) {
  onnx_import *m = n->m;
  const char *name = onnx_tidy(m, called);
  for (size_t i = 0; i < m->weights.n && name != NULL; i++)
    if (strcmp(m->weights.v[i].path, name) == 0)
      name = onnx_print(n, "%s_copy", name); /* a layer has it, too */
  if (name != NULL) name = onnx_unused(m, name);
  const char *call = onnx_print(n, "%s(%s)", trained ? "param" : "buffer",
                                onnx_list_text(n, t->type.dims, t->type.rank, false));
  bool added = name != NULL && onnx_add_layer(m, name, 1, NULL, 0, call) == TN_OK &&
               onnx_add_weight(m, name, t) == TN_OK;
  return added ? name : NULL;
}

static void infinity_signs(const void *how, const tn_type *type, const float *from, float *to) {
  (void)how;
  for (int64_t i = 0; i < tn_type_count(type); i++) to[i] = isinf(from[i]) ? from[i] > 0 ? 1 : -1 : 0;
}

static void infinity_rest(const void *how, const tn_type *type, const float *from, float *to) {
  (void)how;
  for (int64_t i = 0; i < tn_type_count(type); i++) to[i] = isinf(from[i]) ? 0 : from[i];
}

/* *has: the tensor has infinities, which no file of weights may have. */
static tn_status infinity_look(const onnx_use *n, const tn_onnx_tensor *t, bool *has) {
  void *data = tn_alloc(n->m->env, tn_type_bytes(&t->type) + 1);
  tn_status status = data != NULL ? tn_onnx_tensor_read(n->m->file, t, data) : TN_ENOMEM;
  *has = false;
  for (int64_t i = 0; status == TN_OK && !*has && i < tn_type_count(&t->type); i++)
    *has = isinf(tn_element_load(t->type.dtype, data, i));
  tn_release(n->m->env, data);
  return status;
}

/* A constant with infinities, as masks have: where they are, and the other numbers. */
static const char *value_infinite(const onnx_use *n, const onnx_value *value) {
  const tn_onnx_tensor *t = value->tensor;
  const char *signs = value_parameter(n, onnx_print(n, "%s.infinite", value->name),
                                      onnx_derive(n->m, t, &t->type, infinity_signs, NULL), false);
  const char *rest = value_parameter(n, onnx_print(n, "%s.finite", value->name),
                                     onnx_derive(n->m, t, &t->type, infinity_rest, NULL), false);
  if (signs == NULL || rest == NULL) return NULL;
  return onnx_let(n, "%s if %s == 0 else %s * inf", rest, signs, signs);
}

/* A line for a tensor: a parameter, or a buffer, which is not trained. The model keeps floats; others are
 * cast. */
static const char *value_store(const onnx_use *n, const onnx_value *value) {
  bool is_float = value->type.dtype == TN_F32, has = false;
  if (is_float && infinity_look(n, value->tensor, &has) != TN_OK) return NULL;
  if (has) return value_infinite(n, value);
  const char *name = value_parameter(n, value->name, value->tensor, value->is_weight && is_float);
  if (is_float || name == NULL) return name;
  return onnx_between(n, &name, 1, "cast(to=%s)", tn_dtype_name(value->type.dtype));
}

bool onnx_is_even(const onnx_value *value, double *step) {
  int64_t count = tn_type_count(&value->type);
  const double *v = value->known;
  *step = count > 1 && v[1] != v[0] ? v[1] - v[0] : 0;
  bool even = value->type.rank == 1 || *step == 0;
  for (int64_t i = 1; i < count; i++)
    even = even && (*step == 0 ? v[i] == v[i - 1] : v[i] - v[i - 1] == *step);
  return even && count > 0 && isfinite(*step);
}

/* Known numbers without a rule, in the file of weights. */
static const char *value_keep(const onnx_use *n, const onnx_value *value) {
  int64_t count = tn_type_count(&value->type);
  onnx_value kept = *value;
  for (int64_t i = 0; i < count; i++)
    if (value->type.dtype != TN_F32 && (double)(float)value->known[i] != value->known[i]) {
      ONNX_REFUSE(n, "a list of whole numbers that f32 cannot hold");
      return NULL;
    }
  kept.tensor = onnx_make_tensor(n->m, value->name, &value->type, value->known);
  kept.is_weight = false;
  return kept.tensor != NULL ? value_store(n, &kept) : NULL;
}

/* A line for known numbers. */
static const char *value_write(const onnx_use *n, const onnx_value *value) {
  const double *v = value->known;
  double step;
  for (int64_t i = 0; i < tn_type_count(&value->type); i++)
    if (value->type.dtype != TN_F32 && v[i] > 0 && v[i] < 0x1p53 && onnx_is_batch(n->m, (int64_t)v[i])) {
      ONNX_REFUSE(n, "the size of the batch as an operand");
      return NULL;
    }
  if (tn_type_count(&value->type) == 0) {
    ONNX_REFUSE(n, "an array without elements");
    return NULL;
  }
  if (!onnx_is_even(value, &step)) return value_keep(n, value);
  const char *name = onnx_unused(n->m, onnx_tidy(n->m, value->name)), *text;
  const char *dims = onnx_list_text(n, value->type.dims, value->type.rank, false);
  const char *dtype = tn_dtype_name(value->type.dtype);
  bool whole = value->type.dtype != TN_F32;
  const char *first = whole ? onnx_print(n, "%.0f", v[0]) : onnx_float_text(n, v[0]);
  if (step == 0)
    text = onnx_print(n, "full(%s, %s, dtype=%s)", dims, first, dtype);
  else
    text = onnx_print(n, "iota(%s, dtype=%s) * %s + %s", dims, dtype,
                      whole ? onnx_print(n, "%.0f", step) : onnx_float_text(n, step), first);
  return name != NULL && onnx_add_line(n->m, name, text) == TN_OK ? name : NULL;
}

/* Whether a constant of the file is written as a rule, as known numbers are. Finite floats among the
 * initializers are parameters. */
static bool value_is_plain(const onnx_use *n, const onnx_value *value) {
  double step;
  bool trained = value->is_weight && value->type.dtype == TN_F32;
  if (value->known == NULL && onnx_look(n->m, onnx_find(n->m, value->name)) != TN_OK)
    tn_error_clear(n->m->env);
  value = onnx_find(n->m, value->name);
  return value->known != NULL && onnx_is_even(value, &step) && (!trained || isinf(value->known[0]));
}

static const char *value_hasten(const onnx_use *n, const onnx_value *value) {
  const char *given = value->name, *line = onnx_unused(n->m, onnx_tidy(n->m, given)), *lazy = value->lazy;
  if (line == NULL || onnx_add_line(n->m, line, lazy) != TN_OK) return NULL;
  return onnx_find(n->m, given)->line = line;
}

const char *onnx_line_of(const onnx_use *n, const char *name) {
  const onnx_value *value = onnx_find(n->m, name);
  if (value->line != NULL) return value->line;
  if (value->lazy != NULL) return value_hasten(n, value);
  bool plain = value_is_plain(n, value);
  const char *line = value->tensor != NULL && !plain ? value_store(n, value) : value_write(n, value);
  return onnx_find(n->m, name)->line = line;
}

const char *onnx_buffer(const onnx_use *n, const char *name, const tn_type *type, const double *elements) {
  const tn_onnx_tensor *tensor = onnx_make_tensor(n->m, name, type, elements);
  const onnx_value value = {.name = name, .tensor = tensor, .type = *type};
  if (tensor == NULL || onnx_add_value(n->m, &value) != TN_OK) return NULL;
  return onnx_line_of(n, name);
}

/* Whether operand k is a line of at least the rank of operand i. */
static bool value_covers(const onnx_use *n, int32_t k, int32_t i) {
  const onnx_value *other = onnx_operand(n, k);
  return k != i && other != NULL && other->type.rank >= onnx_type(n, i)->rank &&
         (other->line != NULL || other->lazy != NULL);
}

/* Whether the value is one number that the language can write, which takes nothing from the rank of the
 * result. */
static bool value_is_number(const onnx_use *n, int32_t i, double *number) {
  int64_t count;
  const onnx_value *value = onnx_operand(n, i);
  bool covered = false;
  for (int32_t k = 0; k < n->node->n_in; k++) covered = covered || value_covers(n, k, i);
  if (value->line != NULL || tn_type_count(&value->type) != 1 || !covered || value->type.dtype == TN_BOOL)
    return false;
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
  return onnx_line_of(n, value->name);
}

/* ---- lines of all operands ---- */

tn_status onnx_emit(const onnx_use *n, const char *const *operands, int32_t count, const char *call, ...) {
  const char *all[ONNX_MOST_OPERANDS];
  va_list args;
  va_start(args, call);
  const char *kept = onnx_print_all(n, call, args);
  va_end(args);
  if (operands != NULL) return onnx_emit_texts(n, operands, count, kept);
  if (n->node->n_in > ONNX_MOST_OPERANDS) return ONNX_REFUSE(n, "more than %d operands", ONNX_MOST_OPERANDS);
  for (int32_t i = 0; i < n->node->n_in; i++) {
    all[i] = onnx_text_of(n, i, true);
    if (all[i] == NULL) return onnx_failed(n);
  }
  return onnx_emit_texts(n, all, n->node->n_in, kept);
}

tn_status onnx_layer_on(const onnx_use *n, const char *text, const onnx_use *result,
                        const onnx_layer_weight *weights, int32_t n_weights, const char *call) {
  onnx_import *m = n->m;
  const char *path = onnx_path(n, weights, n_weights);
  onnx_tie ties[ONNX_MOST_LAYER_WEIGHTS];
  const tn_onnx_tensor *tensors[ONNX_MOST_LAYER_WEIGHTS];
  if (path == NULL || text == NULL) return onnx_failed(n);
  for (int32_t i = 0; i < n_weights; i++) {
    tensors[i] = onnx_weight_tensor(m, &weights[i]);
    ties[i].name = weights[i].name;
    TN_TRY(onnx_find_tie(m, call, tensors[i], &ties[i]));
  }
  TN_TRY(onnx_add_layer(m, path, 1, &text, 1, onnx_tied_call(m, call, ties, n_weights)));
  for (int32_t i = 0; i < n_weights; i++) {
    if (ties[i].weight != NULL) continue;
    TN_TRY(onnx_add_weight(m, tn_arena_printf(&m->arena, "%s.%s", path, weights[i].name), tensors[i]));
    TN_TRY(onnx_note_weight(m, call));
  }
  return onnx_bind(result, 0, path);
}

tn_status onnx_layer(const onnx_use *n, int32_t input, const onnx_use *result,
                     const onnx_layer_weight *weights, int32_t n_weights, const char *call) {
  return onnx_layer_on(n, onnx_text_of(n, input, false), result, weights, n_weights, call);
}
