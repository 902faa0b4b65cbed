/* core/onnx/import.c: a model of ONNX as a configuration: reads the file, expresses each node by its row, and
 * writes. */
#include "core/onnx/onnx.h"

#include <string.h>

#include "core/onnx/import.h"

enum { IMPORT_MOST_TOLD = 40 };

/* ---- inputs and weights ---- */

static tn_status import_check_input(const onnx_import *m, const tn_onnx_field *field) {
  if (field->type.dtype == TN_ANY)
    return tn_failf(m->env, TN_EUNSUPPORTED, "input '%s' is of %s, which Tenon lacks", field->name,
                    tn_onnx_type_name(field->data_type));
  if (!field->has_shape || field->type.rank == 0)
    return tn_failf(
        m->env, TN_EUNSUPPORTED,
        "input '%s' has no dimensions, expected the batch as its first one; export the model with its shapes",
        field->name);
  for (int32_t i = 1; i < field->type.rank; i++)
    if (field->type.dims[i] < 0)
      return tn_failf(
          m->env, TN_EUNSUPPORTED,
          "input '%s': dimension %d has no size; export the model with fixed sizes, but for the batch",
          field->name, i);
  return TN_OK;
}

static tn_status import_add_input(onnx_import *m, const tn_onnx_field *field) {
  TN_TRY(import_check_input(m, field));
  tn_type type = {.dtype = onnx_value_dtype(field->data_type), .rank = field->type.rank - 1};
  memcpy(type.dims, field->type.dims + 1, (size_t)type.rank * sizeof *type.dims);
  char *name = tn_arena_strdup(&m->arena, onnx_tidy(m, field->name));
  if (name == NULL) return TN_ENOMEM;
  for (char *c = name; *c != '\0'; c++)
    if (*c == '.') *c = '_';
  if (m->batch == 0 && field->type.dims[0] > 0) m->batch = field->type.dims[0];
  if (m->input == NULL) m->input = name;
  TN_TRY(tn_growing_input(m->model, name, &type));
  return onnx_add_value(
      m, &(onnx_value){.name = field->name, .line = name, .type = *tn_growing_type(m->model, name)});
}

static tn_status import_add_tensor(onnx_import *m, const char *name, const tn_onnx_tensor *tensor,
                                   bool is_weight) {
  onnx_value value = {.name = name, .tensor = tensor, .type = tensor->type, .is_weight = is_weight};
  value.type.dtype = onnx_value_dtype(tensor->data_type);
  return onnx_add_value(m, &value);
}

/* Older files list weights as inputs, too. */
static tn_status import_begin(onnx_import *m) {
  const tn_onnx_file *f = m->file;
  for (int64_t i = 0; i < f->n_initializers; i++)
    TN_TRY(import_add_tensor(m, f->initializers[i].name, &f->initializers[i], true));
  for (int64_t i = 0; i < f->n_inputs; i++)
    if (onnx_find(m, f->inputs[i].name) == NULL) TN_TRY(import_add_input(m, &f->inputs[i]));
  return m->input != NULL ? TN_OK : tn_failf(m->env, TN_EUNSUPPORTED, "the graph has no input");
}

/* ---- uses ---- */

static tn_status import_count(onnx_import *m, const char *name, int64_t user) {
  if (name[0] == '\0') return TN_OK;
  if (onnx_find(m, name) == NULL) TN_TRY(onnx_add_value(m, &(onnx_value){.name = name, .lost = true}));
  onnx_value *value = onnx_find(m, name);
  value->uses++;
  value->user = user;
  return TN_OK;
}

static tn_status import_count_uses(onnx_import *m) {
  const tn_onnx_file *f = m->file;
  TN_TRY(tn_vec_reserve(m->env, &m->done, (size_t)f->n_nodes + 1));
  for (int64_t i = 0; i < f->n_nodes; i++) {
    TN_TRY(tn_vec_push(m->env, &m->done, false));
    for (int32_t k = 0; k < f->nodes[i].n_in; k++) TN_TRY(import_count(m, f->nodes[i].in[k], i));
  }
  for (int64_t i = 0; i < f->n_outputs; i++) {
    TN_TRY(import_count(m, f->outputs[i].name, -1));
    onnx_find(m, f->outputs[i].name)->is_output = true;
  }
  return TN_OK;
}

/* ---- operators that are missing ---- */

static tn_status import_miss(onnx_import *m, const char *op, const char *reason) {
  for (size_t i = 0; i < m->missing.n; i++)
    if (strcmp(m->missing.v[i].op, op) == 0 && strcmp(m->missing.v[i].reason, reason) == 0) {
      m->missing.v[i].count++;
      return TN_OK;
    }
  const onnx_missing missing = {op, tn_arena_strdup(&m->arena, reason), 1};
  return missing.reason != NULL ? tn_vec_push(m->env, &m->missing, missing) : TN_ENOMEM;
}

static tn_status import_tell(onnx_import *m) {
  const char **lines = tn_arena_alloc(&m->arena, (m->missing.n + 1) * sizeof *lines);
  if (lines == NULL) return TN_ENOMEM;
  lines[0] = tn_arena_printf(&m->arena,
                             "%s: %zu operators cannot be expressed, and nothing is written:", m->file->path,
                             m->missing.n);
  for (size_t i = 0; i < m->missing.n; i++) {
    const onnx_missing *missing = &m->missing.v[i];
    lines[i + 1] = tn_arena_printf(&m->arena, "  %lld x %s: %s", (long long)missing->count, missing->op,
                                   missing->reason);
    if (lines[i + 1] == NULL) return TN_ENOMEM;
  }
  return lines[0] != NULL
             ? tn_fail_lines(m->env, TN_EUNSUPPORTED, lines, (int32_t)m->missing.n + 1, IMPORT_MOST_TOLD)
             : TN_ENOMEM;
}

/* ---- nodes ---- */

/* Constant has its value in an attribute, of several forms. */
static tn_status import_constant(const onnx_use *n) {
  const tn_onnx_attribute *a = n->node->n_attributes > 0 ? &n->node->attributes[0] : NULL;
  bool whole = a != NULL && (strcmp(a->name, "value_int") == 0 || strcmp(a->name, "value_ints") == 0);
  bool list = a != NULL && (strcmp(a->name, "value_ints") == 0 || strcmp(a->name, "value_floats") == 0);
  if (a != NULL && a->tensor != NULL) return import_add_tensor(n->m, n->node->out[0], a->tensor, false);
  if (a == NULL || (!whole && !list && strcmp(a->name, "value_float") != 0))
    return ONNX_REFUSE(n, "a constant of text, or a sparse one");
  int32_t count = list ? whole ? a->n_wholes : a->n_numbers : 1;
  double *known = tn_arena_alloc(&n->m->arena, (size_t)count * sizeof *known + 1);
  if (known == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < count; i++)
    known[i] = whole ? (double)(list ? a->wholes[i] : a->whole) : list ? a->numbers[i] : a->number;
  tn_type type = {.dtype = whole ? TN_I64 : TN_F32, .rank = list, .dims = {count}};
  return onnx_bind_known(n, 0, &type, known);
}

/* Whether an operand comes from a node that could not be expressed. */
static bool import_is_lost(const onnx_use *n) {
  for (int32_t i = 0; i < n->node->n_in; i++) {
    const onnx_value *value = onnx_operand(n, i);
    if (onnx_has(n, i) && (value == NULL || value->lost)) return true;
  }
  return false;
}

static tn_status import_node(const onnx_use *n) {
  bool folded = false;
  if (strcmp(n->node->op, "Constant") == 0) return import_constant(n);
  const onnx_row *row = onnx_row_of(n->node->op);
  TN_TRY(onnx_fold(n, &folded));
  if (folded) return TN_OK;
  if (row == NULL) return ONNX_REFUSE(n, "Tenon has no counterpart");
  for (int32_t i = 0; i < (row->operands > 0 ? row->operands : 1); i++)
    if (onnx_operand(n, i) == NULL) return ONNX_REFUSE(n, "operand %d is absent", i);
  return onnx_row_apply(row, n);
}

static tn_status import_lose(const onnx_use *n) {
  for (int32_t k = 0; k < n->node->n_out; k++)
    if (n->node->out[k][0] != '\0')
      TN_TRY(onnx_add_value(n->m, &(onnx_value){.name = n->node->out[k], .lost = true}));
  return TN_OK;
}

/* An operator of another domain has that in its name. */
static const char *import_op_name(onnx_import *m, const tn_onnx_node *node) {
  bool main = node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0;
  return main ? node->op : tn_arena_printf(&m->arena, "%s.%s", node->domain, node->op);
}

static tn_status import_step(onnx_import *m, int64_t i) {
  const onnx_use n = {m, &m->file->nodes[i], i};
  const char *op = import_op_name(m, n.node);
  if (op == NULL) return TN_ENOMEM;
  if (n.node->n_out == 0 || m->done.v[i]) return TN_OK;
  bool main = op == n.node->op, lost = import_is_lost(&n);
  if (!main || (lost && onnx_row_of(op) == NULL && !onnx_folds(op))) {
    TN_TRY(import_miss(m, op, main ? "Tenon has no counterpart" : "an operator of another domain"));
    return import_lose(&n);
  }
  if (lost) return import_lose(&n);
  tn_status status = import_node(&n);
  if (status == TN_OK) return TN_OK;
  if (status != TN_EUNSUPPORTED && status != TN_EINVAL)
    return tn_wrap(m->env, status, "node %lld, %s '%.100s'", (long long)i, op, n.node->name);
  TN_TRY(import_miss(m, op, tn_error_text(m->env)));
  tn_error_clear(m->env);
  return import_lose(&n);
}

/* Every output of the graph is a line. */
static tn_status import_check_outputs(onnx_import *m) {
  for (int64_t i = 0; i < m->file->n_outputs; i++) {
    const onnx_value *value = onnx_find(m, m->file->outputs[i].name);
    if (value->lost && m->missing.n > 0) continue;
    if (value->lost || value->line == NULL)
      TN_TRY(import_miss(m, "output",
                         tn_arena_printf(&m->arena,
                                         "'%.100s' is computed by no node, or does not depend on the input",
                                         value->name)));
  }
  return m->file->n_outputs > 0 ? TN_OK : import_miss(m, "output", "the graph has none");
}

static tn_status import_nodes(onnx_import *m) {
  TN_TRY(import_begin(m));
  TN_TRY(import_count_uses(m));
  for (int64_t i = 0; i < m->file->n_nodes; i++) {
    TN_TRY(tn_check_stop(m->env));
    TN_TRY(import_step(m, i));
  }
  TN_TRY(import_check_outputs(m));
  return m->missing.n == 0 ? TN_OK : import_tell(m);
}

/* ---- the call ---- */

static void import_free(onnx_import *m) {
  tn_growing_destroy(m->model);
  tn_name_index_free(&m->names);
  tn_name_index_free(&m->stems);
  tn_vec_free(m->env, &m->numbers);
  tn_vec_free(m->env, &m->values);
  tn_vec_free(m->env, &m->lines);
  tn_vec_free(m->env, &m->weights);
  tn_vec_free(m->env, &m->missing);
  tn_vec_free(m->env, &m->done);
  tn_arena_free(&m->arena);
}

static tn_status import_write(onnx_import *m, const char *weights_path, const char *weights_name,
                              tn_onnx_imported *made) {
  TN_TRY(onnx_write_text(m, weights_name, &made->text));
  made->nodes = m->file->n_nodes;
  made->lines = (int64_t)m->lines.n;
  for (int32_t i = 0; i < tn_growing_states(m->model); i++) {
    const tn_type *type;
    tn_growing_state(m->model, i, &type);
    made->parameters += tn_type_count(type);
  }
  return m->weights.n > 0 ? onnx_write_weights(m, weights_path) : TN_OK;
}

tn_status tn_onnx_import(tn_env *env, tn_registry *registry, struct tn_op_table *ops,
                         const tn_onnx_request *request, tn_onnx_imported *made) {
  tn_onnx_file file;
  *made = (tn_onnx_imported){.text = NULL};
  tn_status status = tn_onnx_open(env, request->path, &file);
  onnx_import m = {.env = env,
                   .file = &file,
                   .arena = tn_arena_new(env),
                   .names = tn_name_index_new(env),
                   .stems = tn_name_index_new(env)};
  if (status == TN_OK) status = tn_growing_create(env, registry, ops, ONNX_BATCH, &m.model);
  if (status == TN_OK) {
    status = import_nodes(&m);
    if (status != TN_OK && m.missing.n == 0) tn_wrap(env, status, "%s", request->path);
  }
  if (status == TN_OK) status = import_write(&m, request->weights_path, request->weights_name, made);
  if (status != TN_OK) {
    tn_release(env, made->text);
    made->text = NULL;
  }
  import_free(&m);
  tn_onnx_close(&file);
  return status;
}
