/* core/tensor/call_graph.c: the graph of a call: one op, or its gradient. */
#include "core/tensor/call_graph.h"

#include <stdio.h>

#include "core/graph/op/attributes.h"
#include "tenon/ops.h"

enum { NAME = 16 };

typedef struct call_builder {
  const tn_call_key *key;
  tn_graph *graph;
  tn_build *b;
  tn_val *operands; /* of the op, in schema order */
  int32_t n_operands;
  tn_val first; /* result */
} call_builder;

static tn_val emit_transpose(tn_build *b, tn_val v, int32_t rank, const int32_t *order) {
  int64_t wide[TN_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) wide[i] = order[i];
  return tn_transpose(b, v, rank, wide);
}

/* ---- ports ---- */

/* The input of a port, transposed from storage order to the order of its dimensions; 0: absent. */
static tn_val emit_input(const call_builder *o, int32_t index) {
  const tn_port *p = &o->key->ports[index];
  char name[NAME];
  int32_t axis[TN_MAX_RANK] = {0};
  if (!p->present) return 0;
  snprintf(name, sizeof name, "%d", (int)index);
  tn_type stored = tn_stored_type(&p->type, p->order);
  tn_val v = tn_graph_input(o->graph, name, &stored);
  if (v == 0) tn_builder_fail(o->b, TN_ENOMEM);
  if (!p->permuted) return v;
  for (int32_t k = 0; k < p->type.rank; k++) axis[p->order[k]] = k;
  return emit_transpose(o->b, v, p->type.rank, axis);
}

/* The output of a port, transposed to its storage order. */
static tn_status emit_output(const call_builder *o, int32_t index, tn_val v) {
  const tn_port *p = &o->key->ports[index];
  char name[NAME];
  snprintf(name, sizeof name, "%d", (int)index);
  if (p->permuted) v = emit_transpose(o->b, v, tn_val_type(o->b, v)->rank, p->order);
  TN_TRY(tn_build_status(o->b));
  return tn_graph_output(o->graph, name, v);
}

/* ---- forward ---- */

static tn_status emit_call_op(call_builder *o) {
  const tn_call_key *key = o->key;
  const void *attributes = tn_attributes_copy(&o->graph->arena, &key->def->op->item, key->attributes);
  o->operands = tn_arena_alloc(&o->graph->arena, tn_size_mul((size_t)key->n_ports + 1, sizeof *o->operands));
  if (attributes == NULL || o->operands == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < key->n_ports; i++)
    if (key->ports[i].role == TN_PORT_OPERAND) o->operands[o->n_operands++] = emit_input(o, i);
  TN_TRY(tn_build_status(o->b));
  return tn_graph_add(o->graph, key->def, attributes, o->operands, o->n_operands, "", "", &o->first);
}

static tn_status emit_call_results(call_builder *o) {
  for (int32_t i = 0; i < o->key->n_ports; i++)
    if (o->key->ports[i].role == TN_PORT_RESULT)
      TN_TRY(emit_output(o, i, o->first + (tn_val)o->key->ports[i].number));
  return TN_OK;
}

/* ---- gradient ---- */

static tn_status check_dresult(const call_builder *o, const tn_port *p, tn_val result) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_type *type = tn_graph_type(o->graph, result);
  if (tn_type_equal(&p->type, type) && tn_dtype_is_float(type->dtype)) return TN_OK;
  if (!tn_dtype_is_float(type->dtype))
    return tn_failf(o->b, TN_EINVAL, "%s: result %d is %s, which has no gradient; expected NULL for it",
                    o->key->def->op->item.name, (int)p->number, tn_type_format(type, one));
  return tn_failf(o->b, TN_EINVAL, "%s: the gradient of result %d is %s, expected %s",
                  o->key->def->op->item.name, (int)p->number, tn_type_format(&p->type, one),
                  tn_type_format(type, other));
}

/* A scalar whose gradient with respect to each result is the given gradient. */
static tn_status emit_call_loss(const call_builder *o, tn_val *loss) {
  tn_build *b = o->b;
  *loss = 0;
  for (int32_t i = 0; i < o->key->n_ports; i++) {
    const tn_port *p = &o->key->ports[i];
    if (p->role != TN_PORT_DRESULT || !p->present) continue;
    tn_val result = o->first + (tn_val)p->number;
    TN_TRY(check_dresult(o, p, result));
    tn_val product = tn_mul(b, result, emit_input(o, i));
    tn_val part = tn_to_dtype(b, tn_reduce_sum(b, product, 0, NULL, 0), TN_F32);
    *loss = *loss == 0 ? part : tn_add(b, *loss, part);
  }
  return tn_build_status(b);
}

static tn_status emit_call_gradients(call_builder *o) {
  size_t most = (size_t)o->key->n_ports + 1;
  tn_val loss, *wrt = tn_arena_alloc(&o->graph->arena, tn_size_mul(most, 2 * sizeof *wrt));
  int32_t n = 0;
  if (wrt == NULL) return TN_ENOMEM;
  tn_val *gradient = wrt + most;
  for (int32_t i = 0; i < o->key->n_ports; i++)
    if (o->key->ports[i].role == TN_PORT_GRADIENT) wrt[n++] = o->operands[o->key->ports[i].number];
  TN_TRY(emit_call_loss(o, &loss));
  if (loss != 0) TN_TRY(tn_differentiate(o->b, loss, 0, wrt, n, gradient, NULL));
  n = 0;
  for (int32_t i = 0; i < o->key->n_ports; i++) {
    if (o->key->ports[i].role != TN_PORT_GRADIENT) continue;
    tn_val value = gradient[n] != 0 ? gradient[n] : tn_full(o->b, tn_val_type(o->b, wrt[n]), 0.0);
    n++;
    TN_TRY(tn_build_status(o->b));
    TN_TRY(emit_output(o, i, value));
  }
  return TN_OK;
}

/* ---- the graph ---- */

static tn_status emit_call(call_builder *o) {
  tn_builder *builder = NULL;
  TN_TRY(tn_builder_create(o->graph, &builder));
  o->b = tn_builder_handle(builder);
  tn_status status = emit_call_op(o);
  if (status == TN_OK) status = o->key->gradient ? emit_call_gradients(o) : emit_call_results(o);
  if (status != TN_OK) tn_error_move(o->graph->env, o->b);
  tn_builder_destroy(builder);
  return status;
}

tn_status tn_call_graph_create(tn_env *env, struct tn_op_table *ops, const tn_call_key *key, tn_graph **out) {
  call_builder o = {.key = key};
  *out = NULL;
  TN_TRY(tn_graph_create(env, ops, &o.graph));
  tn_status status = emit_call(&o);
  if (status == TN_OK)
    *out = o.graph;
  else
    tn_graph_destroy(o.graph);
  return status;
}
