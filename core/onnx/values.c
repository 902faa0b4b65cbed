/* core/onnx/values.c: see import.h. */
#include <ctype.h>
#include <math.h>
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

tn_status onnx_look(onnx_import *m, onnx_value *value) {
  const tn_onnx_tensor *t = value->tensor;
  int64_t count = tn_type_count(&t->type);
  if (count > (value->is_weight && value->type.dtype == TN_F32 ? ONNX_MOST_KNOWN : ONNX_MOST_COMPUTED) ||
      t->type.dtype == TN_ANY)
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
  if (value->known == NULL && value->tensor != NULL && onnx_look(n->m, value) != TN_OK)
    tn_error_clear(n->m->env);
  *count = tn_type_count(&value->type);
  return value->known;
}

static bool value_is_input(const onnx_use *n, int32_t i) {
  for (int64_t k = 0; k < n->m->file->graph.n_inputs; k++)
    if (strcmp(n->m->file->graph.inputs[k].name, n->node->in[i]) == 0) return true;
  return false;
}

const double *onnx_known(const onnx_use *n, int32_t i, int64_t *count) {
  const double *known = onnx_peek(n, i, count);
  if (known == NULL && value_is_input(n, i))
    ONNX_REFUSE(
        n, "operand %d is the input '%.100s', expected known numbers; give them: --constant %.100s=FILE.npy",
        i, n->node->in[i], n->node->in[i]);
  else if (known == NULL)
    ONNX_REFUSE(n, "operand %d depends on the inputs of the model", i);
  return known;
}

bool onnx_is_weight(const onnx_use *n, int32_t i, int32_t rank) {
  const onnx_value *value = onnx_operand(n, i);
  return value != NULL && value->tensor != NULL && value->type.dtype == TN_F32 &&
         (rank < 0 || value->type.rank == rank);
}

tn_status onnx_filled(const onnx_use *n, double *number, int32_t *dtype) {
  const tn_onnx_attribute *a = onnx_attribute(n, "value");
  *number = 0;
  *dtype = TN_F32;
  if (a == NULL || a->tensor == NULL) return TN_OK;
  onnx_value value = {.tensor = a->tensor, .type = a->tensor->type};
  TN_TRY(onnx_look(n->m, &value));
  if (value.known == NULL || tn_type_count(&value.type) != 1)
    return ONNX_REFUSE(n, "a filled array of an unknown number");
  *number = value.known[0];
  *dtype = onnx_value_dtype(a->tensor->data_type);
  return TN_OK;
}

/* ---- results ---- */

tn_status onnx_bind(const onnx_use *n, int32_t k, const char *line) {
  const tn_type *type = tn_growing_type(n->m->model, line);
  if (type == NULL) return tn_failf(n->m->env, TN_EINTERNAL, "line '%s' has no value", line);
  return onnx_add_value(n->m, &(onnx_value){.name = n->node->out[k], .line = line, .type = *type});
}

tn_status onnx_bind_lazy(const onnx_use *n, const char *expression, const tn_type *type, const char *turned) {
  return onnx_add_value(
      n->m, &(onnx_value){.name = n->node->out[0], .lazy = expression, .type = *type, .turned = turned});
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
  if (value == NULL || value->uses != 1 || value->is_output || value->user < 0) return false;
  *next = (onnx_use){n->m, n->m->nodes.v[value->user], value->user};
  return next->node->n_out > 0 && strcmp(next->node->op, op) == 0;
}

const tn_onnx_function *onnx_function_of(const onnx_import *m, const tn_onnx_node *node) {
  for (int64_t i = 0; i < m->file->n_functions; i++)
    if (strcmp(m->file->functions[i].name, node->op) == 0 &&
        strcmp(m->file->functions[i].domain, node->domain) == 0)
      return &m->file->functions[i];
  return NULL;
}

/* ---- uses ---- */

tn_status onnx_count(onnx_import *m, const char *name, int64_t user) {
  if (name[0] == '\0') return TN_OK;
  if (onnx_find(m, name) == NULL) TN_TRY(onnx_add_value(m, &(onnx_value){.name = name, .lost = true}));
  onnx_value *value = onnx_find(m, name);
  value->uses++;
  value->user = user;
  return TN_OK;
}

/* Bodies and branches use values of the graph around them: the node is their user. */
static tn_status value_count_body(onnx_import *m, const tn_onnx_graph *g, int64_t user) {
  for (int64_t i = 0; i < g->n_nodes; i++) {
    const tn_onnx_node *node = &g->nodes[i];
    for (int32_t k = 0; k < node->n_in; k++) TN_TRY(onnx_count(m, node->in[k], user));
    for (int32_t k = 0; k < node->n_attributes; k++)
      if (node->attributes[k].graph != NULL) TN_TRY(value_count_body(m, node->attributes[k].graph, user));
  }
  for (int64_t i = 0; i < g->n_outputs; i++) TN_TRY(onnx_count(m, g->outputs[i].name, user));
  return TN_OK;
}

tn_status onnx_add_node(onnx_import *m, const tn_onnx_node *node) {
  int64_t number = (int64_t)m->nodes.n;
  const onnx_use n = {m, node, number};
  if (number >= TN_ONNX_MOST_NODES)
    return ONNX_REFUSE(&n, "more than %d nodes with those of loops", TN_ONNX_MOST_NODES);
  TN_TRY(tn_vec_push(m->env, &m->nodes, node));
  TN_TRY(tn_vec_push(m->env, &m->done, false));
  for (int32_t k = 0; k < node->n_in; k++) TN_TRY(onnx_count(m, node->in[k], number));
  for (int32_t k = 0; k < node->n_attributes; k++)
    if (node->attributes[k].graph != NULL) TN_TRY(value_count_body(m, node->attributes[k].graph, number));
  return TN_OK;
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
