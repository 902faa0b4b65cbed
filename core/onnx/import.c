/* core/onnx/import.c: a model of ONNX as a configuration: reads the file, expresses each node by its row, and
 * writes. */
#include "core/onnx/onnx.h"

#include <string.h>

#include "core/onnx/import.h"

/* ---- uses ---- */

static tn_status import_count_uses(onnx_import *m) {
  const tn_onnx_graph *f = &m->file->graph;
  for (int64_t i = 0; i < f->n_nodes; i++) TN_TRY(onnx_add_node(m, &f->nodes[i]));
  for (int64_t i = 0; i < f->n_outputs; i++) {
    TN_TRY(onnx_count(m, f->outputs[i].name, -1));
    if (f->outputs[i].name[0] != '\0') onnx_find(m, f->outputs[i].name)->is_output = true;
  }
  return TN_OK;
}

/* ---- nodes ---- */

/* Constant has its value in an attribute, of several forms. */
static tn_status import_constant(const onnx_use *n) {
  const tn_onnx_attribute *a = n->node->n_attributes > 0 ? &n->node->attributes[0] : NULL;
  bool whole = a != NULL && (strcmp(a->name, "value_int") == 0 || strcmp(a->name, "value_ints") == 0);
  bool list = a != NULL && (strcmp(a->name, "value_ints") == 0 || strcmp(a->name, "value_floats") == 0);
  if (a != NULL && a->tensor != NULL) return onnx_bind_tensor(n, a->tensor, false);
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

/* Operators that move zeros give zeros: first states of recurrent layers are such. */
static void import_keep_zero(const onnx_use *n) {
  static const char *const movers[] = {"Identity",  "Cast",      "Reshape", "Squeeze",
                                       "Unsqueeze", "Transpose", "Slice",   "Expand"};
  bool zero = false;
  for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
    zero = zero || strcmp(n->node->op, movers[i]) == 0;
  const onnx_value *from = onnx_operand(n, 0);
  onnx_value *to = onnx_find(n->m, n->node->out[0]);
  int64_t count = 0;
  const double *known = onnx_peek(n, 0, &count);
  if (!zero || from == NULL || to == NULL) return;
  bool all = known != NULL;
  for (int64_t i = 0; i < count && all; i++) all = known[i] == 0;
  to->zero = from->zero || (all && count > 0);
}

static tn_status import_node(const onnx_use *n) {
  bool folded = false;
  if (strcmp(n->node->op, "Constant") == 0) return import_constant(n);
  const onnx_row *row = onnx_row_of(n->m, n->node);
  if (n->node->domain[0] == '\0') TN_TRY(onnx_fold(n, &folded));
  if (folded) return TN_OK;
  if (row == NULL) return ONNX_REFUSE(n, "Tenon has no counterpart");
  for (int32_t i = 0; i < (row->operands > 0 ? row->operands : 1) && !row->optional; i++)
    if (onnx_operand(n, i) == NULL) return ONNX_REFUSE(n, "operand %d is absent", i);
  TN_TRY(onnx_row_apply(row, n));
  import_keep_zero(n);
  onnx_keep_places(n);
  return TN_OK;
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

static tn_status import_express(onnx_import *m, int64_t i) {
  const onnx_use n = {m, m->nodes.v[i], i};
  const char *op = import_op_name(m, n.node);
  if (op == NULL) return TN_ENOMEM;
  if (n.node->n_out == 0 || m->done.v[i]) return TN_OK;
  bool main = op == n.node->op, lost = import_is_lost(&n), known = onnx_row_of(m, n.node) != NULL;
  if (!known && (!main || (lost && !onnx_folds(op)))) {
    TN_TRY(onnx_miss(m, op, main ? "Tenon has no counterpart" : "an operator of another domain"));
    return import_lose(&n);
  }
  if (lost) return import_lose(&n);
  tn_status status = import_node(&n);
  if (status == TN_OK) return TN_OK;
  if (status != TN_EUNSUPPORTED && status != TN_EINVAL)
    return tn_wrap(m->env, status, "node %lld, %s '%.100s'", (long long)i, op, n.node->name);
  TN_TRY(onnx_miss(m, op, tn_error_text(m->env)));
  tn_error_clear(m->env);
  return import_lose(&n);
}

/* A node of a body that stands in no module of its own is a part of the node around it. */
static tn_status import_step(onnx_import *m, int64_t i) {
  const char *outer = m->scope, *own = onnx_scope(m, m->nodes.v[i]);
  TN_TRY(onnx_note_modules(m, m->nodes.v[i]));
  m->scope = own != NULL ? own : outer;
  tn_status status = import_express(m, i);
  m->scope = outer;
  return status;
}

/* Constants come first: a row looks at the nodes behind its own, too. */
static tn_status import_steps(onnx_import *m, int64_t first, int64_t end) {
  for (int64_t i = first; i < end; i++) {
    const tn_onnx_node *node = m->nodes.v[i];
    if (strcmp(node->op, "Constant") != 0 || node->domain[0] != '\0') continue;
    TN_TRY(import_step(m, i));
    m->done.v[i] = true;
  }
  for (int64_t i = first; i < end; i++) {
    TN_TRY(tn_check_stop(m->env));
    TN_TRY(import_step(m, i));
  }
  return TN_OK;
}

static tn_status import_nodes(onnx_import *m, const tn_onnx_request *request) {
  TN_TRY(onnx_begin(m, request));
  TN_TRY(import_count_uses(m));
  TN_TRY(import_steps(m, 0, m->file->graph.n_nodes));
  TN_TRY(onnx_end(m));
  return m->missing.n == 0 ? TN_OK : onnx_tell_missing(m);
}

/* ---- the call ---- */

static void import_free(onnx_import *m) {
  tn_growing_destroy(m->model);
  tn_name_index_free(&m->names);
  tn_name_index_free(&m->stems);
  tn_name_index_free(&m->modules);
  tn_name_index_free(&m->tied);
  tn_name_index_free(&m->joins);
  tn_vec_free(m->env, &m->first_tied);
  tn_vec_free(m->env, &m->kinds);
  tn_vec_free(m->env, &m->joined);
  tn_vec_free(m->env, &m->numbers);
  tn_vec_free(m->env, &m->values);
  tn_vec_free(m->env, &m->lines);
  tn_vec_free(m->env, &m->weights);
  tn_vec_free(m->env, &m->missing);
  tn_vec_free(m->env, &m->done);
  tn_vec_free(m->env, &m->nodes);
  tn_vec_free(m->env, &m->inputs);
  tn_vec_free(m->env, &m->outputs);
  tn_arena_free(&m->arena);
}

/* A file that stays open, and its import. */
struct tn_onnx_model {
  onnx_import m;
  tn_onnx_file file;
  char *text;
  tn_registry *registry;
  struct tn_op_table *ops;
};

/* The lines as they are, in one section. */
static tn_status import_flat(onnx_import *m, onnx_section **sections, int32_t *n) {
  *sections = tn_arena_alloc(&m->arena, sizeof **sections);
  *n = 1;
  if (*sections == NULL) return TN_ENOMEM;
  **sections = (onnx_section){.input = m->input,
                              .outputs = m->outputs.v,
                              .n_outputs = (int32_t)m->outputs.n,
                              .lines = m->lines.v,
                              .n_lines = (int32_t)m->lines.n};
  return TN_OK;
}

static tn_status import_write(onnx_import *m, const tn_onnx_request *request, char **text) {
  onnx_section *sections = NULL;
  int32_t n = 0;
  TN_TRY(request->flat ? import_flat(m, &sections, &n) : onnx_find_blocks(m, &sections, &n));
  return onnx_write_text(m, sections, n, request->weights_name, text);
}

/* *again: the failure may be that the first dimension is no batch. */
static tn_status import_try(tn_onnx_model *model, const tn_onnx_request *request, bool whole, bool *again) {
  tn_env *env = model->file.env;
  onnx_import *m = &model->m;
  import_free(m);
  *m = (onnx_import){.env = env,
                     .file = &model->file,
                     .registry = model->registry,
                     .steps = import_steps,
                     .express = import_node,
                     .whole = whole,
                     .arena = tn_arena_new(env),
                     .names = tn_name_index_new(env),
                     .stems = tn_name_index_new(env),
                     .modules = tn_name_index_new(env),
                     .tied = tn_name_index_new(env),
                     .joins = tn_name_index_new(env)};
  TN_TRY(tn_growing_create(env, model->registry, model->ops, whole ? 1 : ONNX_BATCH, &m->model));
  tn_status status = import_nodes(m, request);
  *again = status == TN_EUNSUPPORTED && !whole && onnx_can_be_whole(m);
  if (status != TN_OK && m->missing.n == 0) tn_wrap(env, status, "%s", request->path);
  if (status == TN_OK) status = onnx_prune(m);
  return status == TN_OK ? import_write(m, request, &model->text) : status;
}

static tn_status import_open(tn_onnx_model *model, const tn_onnx_request *request) {
  tn_env *env = model->file.env;
  bool again = false;
  TN_TRY(tn_onnx_open(env, request->path, &model->file));
  tn_status status = import_try(model, request, false, &again);
  if (!again) return status;
  tn_error_clear(env);
  return import_try(model, request, true, &again);
}

static tn_status import_model(tn_env *env, tn_registry *registry, struct tn_op_table *ops,
                              const tn_onnx_request *request, tn_onnx_model **made) {
  tn_onnx_model *model = *made = tn_alloc(env, sizeof *model);
  if (model == NULL) return TN_ENOMEM;
  *model = (tn_onnx_model){.m = {.env = env, .arena = tn_arena_new(env)},
                           .file = {.env = env, .arena = tn_arena_new(env)},
                           .registry = registry,
                           .ops = ops};
  model->m.names = tn_name_index_new(env);
  model->m.stems = tn_name_index_new(env);
  model->m.modules = tn_name_index_new(env);
  model->m.tied = tn_name_index_new(env);
  model->m.joins = tn_name_index_new(env);
  tn_status status = import_open(model, request);
  if (status == TN_OK) return TN_OK;
  tn_onnx_model_close(model);
  *made = NULL;
  return status;
}

tn_status tn_onnx_model_open(tn_env *env, tn_registry *registry, struct tn_op_table *ops, const char *path,
                             tn_onnx_model **model) {
  return import_model(env, registry, ops, &(tn_onnx_request){.path = path, .flat = true}, model);
}

const char *tn_onnx_model_text(const tn_onnx_model *model) { return model->text; }

const char *tn_onnx_model_note(const tn_onnx_model *model, const char *key) {
  return tn_onnx_entry_of(&model->file, key);
}

tn_status tn_onnx_model_read(tn_onnx_model *model, const char *path, float *to, int64_t count) {
  onnx_import *m = &model->m;
  for (size_t i = 0; i < m->weights.n; i++) {
    if (strcmp(m->weights.v[i].path, path) != 0) continue;
    if (tn_type_count(&m->weights.v[i].tensor->type) == count)
      return onnx_read_weight(m, &m->weights.v[i], to);
  }
  return tn_failf(m->env, TN_EINVAL, "%s: has no weight '%s' of %lld numbers", model->file.path, path,
                  (long long)count);
}

void tn_onnx_model_close(tn_onnx_model *model) {
  if (model == NULL) return;
  tn_env *env = model->file.env;
  tn_release(env, model->text);
  import_free(&model->m);
  tn_onnx_close(&model->file);
  tn_release(env, model);
}

static void import_count_made(const onnx_import *m, tn_onnx_imported *made) {
  made->nodes = m->file->graph.n_nodes;
  made->lines = (int64_t)m->lines.n;
  made->whole = m->whole;
  for (size_t i = 0; i < m->weights.n; i++) made->parameters += tn_type_count(&m->weights.v[i].tensor->type);
}

tn_status tn_onnx_import(tn_env *env, tn_registry *registry, struct tn_op_table *ops,
                         const tn_onnx_request *request, tn_onnx_imported *made) {
  tn_onnx_model *model;
  *made = (tn_onnx_imported){.text = NULL};
  TN_TRY(import_model(env, registry, ops, request, &model));
  import_count_made(&model->m, made);
  tn_status status = model->m.weights.n > 0 ? onnx_write_weights(&model->m, request->weights_path) : TN_OK;
  if (status == TN_OK) {
    made->text = model->text;
    model->text = NULL;
  }
  tn_onnx_model_close(model);
  return status;
}
