/* core/graph/build/emit_op.c: emits one op: begin, arg, set, end; then its results. */
#include <string.h>

#include "core/graph/build/builder.h"

/* ---- begin, arg ---- */

static tn_status emit_begin(tn_builder *b, const char *name) {
  const tn_env *env = b->graph->env;
  tn_open_op op = {.first_arg = b->args.n};
  TN_TRY(tn_op_table_find(b->graph->ops, env, name, &op.def));
  TN_TRY(tn_options_start(env, &b->graph->arena, &op.def->op->item, &op.options));
  return tn_vec_push(env, &b->ops, op);
}

void tn_emit_begin(tn_build *handle, const char *op) {
  tn_builder *b = tn_builder_of(handle);
  if (b->status == TN_OK && tn_builder_need(handle, op, "tn_op_begin: op"))
    tn_builder_stick(b, emit_begin(b, op));
}

/* The innermost open op of the top frame; NULL, with a sticky failure, if no op is open. */
static tn_open_op *emit_open_op(tn_builder *b, const char *call) {
  if (b->status != TN_OK) return NULL;
  size_t below = b->frames.n > 0 ? b->frames.v[b->frames.n - 1].n_ops : 0;
  if (b->ops.n > below) return &b->ops.v[b->ops.n - 1];
  tn_builder_stick(b, tn_failf(b->graph->env, TN_EINVAL, "%s without tn_op_begin", call));
  return NULL;
}

void tn_emit_arg(tn_build *handle, tn_val value) {
  tn_builder *b = tn_builder_of(handle);
  if (emit_open_op(b, "tn_op_arg") != NULL) tn_builder_stick(b, tn_vec_push(handle, &b->args, value));
}

/* ---- attributes ---- */

/* The open op, if the pointers are there from which its attribute is set. */
static tn_open_op *emit_op_to_set(tn_build *handle, const char *call, const char *name, const void *value) {
  tn_open_op *op = emit_open_op(tn_builder_of(handle), call);
  if (op == NULL || !tn_builder_need(handle, name, "the name of an attribute")) return NULL;
  return tn_builder_need(handle, value, name) ? op : NULL;
}

/* Makes the outcome of setting an attribute sticky. */
static void emit_check_set(tn_builder *b, const tn_open_op *op, tn_status status) {
  tn_builder_stick(b, tn_wrap(b->graph->env, status, "%s", op->def->op->item.name));
}

void tn_emit_set_int(tn_build *handle, const char *name, int64_t value) {
  tn_builder *b = tn_builder_of(handle);
  tn_open_op *op = emit_op_to_set(handle, "tn_op_set_int", name, &value);
  if (op != NULL) emit_check_set(b, op, tn_options_set_int(handle, &op->options, name, value));
}

void tn_emit_set_float(tn_build *handle, const char *name, double value) {
  tn_builder *b = tn_builder_of(handle);
  tn_open_op *op = emit_op_to_set(handle, "tn_op_set_float", name, &value);
  if (op != NULL) emit_check_set(b, op, tn_options_set_float(handle, &op->options, name, value));
}

void tn_emit_set_ints(tn_build *handle, const char *name, int64_t n, const int64_t *values) {
  tn_builder *b = tn_builder_of(handle);
  tn_open_op *op = emit_op_to_set(handle, "tn_op_set_ints", name, n > 0 ? (const void *)values : &n);
  if (op != NULL) emit_check_set(b, op, tn_options_set_ints(handle, &op->options, name, n, values));
}

void tn_emit_set_floats(tn_build *handle, const char *name, int64_t n, const double *values) {
  tn_builder *b = tn_builder_of(handle);
  tn_open_op *op = emit_op_to_set(handle, "tn_op_set_floats", name, n > 0 ? (const void *)values : &n);
  if (op != NULL) emit_check_set(b, op, tn_options_set_floats(handle, &op->options, name, n, values));
}

void tn_emit_set_text(tn_build *handle, const char *name, const char *value) {
  tn_builder *b = tn_builder_of(handle);
  tn_open_op *op = emit_op_to_set(handle, "tn_op_set_text", name, value);
  if (op != NULL) emit_check_set(b, op, tn_options_set_text(handle, &op->options, name, value));
}

/* ---- end ---- */

/* Lets the frame replace operands. The ops that it emits for that nest in this one. */
static tn_status emit_replace(tn_builder *b, const tn_open_op *op) {
  const tn_build_frame *frame = tn_builder_top(b);
  size_t n = b->args.n - op->first_arg;
  tn_val in[TN_FRAME_OPERANDS];
  if (frame->operands == NULL || n == 0 || n > TN_FRAME_OPERANDS) return TN_OK;
  memcpy(in, b->args.v + op->first_arg, n * sizeof *in);
  frame->operands(&b->host.pub, frame->context, op->def->op, op->options.data, in, (int32_t)n);
  memcpy(b->args.v + op->first_arg, in, n * sizeof *in);
  return b->status;
}

static tn_status emit_end(tn_builder *b, tn_open_op *op, tn_val *first) {
  const tn_env *env = b->graph->env;
  const tn_build_frame *frame = tn_builder_top(b);
  tn_status status = tn_options_finish(env, &op->options);
  if (status != TN_OK) return tn_wrap(env, status, "%s", op->def->op->item.name);
  TN_TRY(emit_replace(b, op));
  const tn_val *in = b->args.n > 0 ? b->args.v + op->first_arg : NULL;
  return tn_graph_add(b->graph, op->def, op->options.data, in, (int32_t)(b->args.n - op->first_arg),
                      frame->prefix, frame->where, first);
}

tn_val tn_emit_end(tn_build *handle) {
  tn_builder *b = tn_builder_of(handle);
  const tn_open_op *open = emit_open_op(b, "tn_op_end");
  tn_val first = 0;
  if (open == NULL) return 0;
  tn_open_op op = *open; /* ops that nest in it move the others */
  if (tn_builder_stick(b, emit_end(b, &op, &first)) != TN_OK) return 0;
  b->args.n = op.first_arg;
  b->ops.n--;
  return first;
}

/* ---- results ---- */

const tn_type *tn_emit_type(tn_build *handle, tn_val value) {
  const tn_graph *g = tn_builder_of(handle)->graph;
  return g->types.v[value < g->types.n ? value : 0];
}

void tn_builder_results(tn_build *handle, const tn_val *values, int32_t n) {
  tn_builder *b = tn_builder_of(handle);
  if (b->status != TN_OK || n < 2) return;
  tn_layer_results results = {tn_arena_copy(&b->graph->arena, values, (size_t)n * sizeof *values), n};
  if (results.values == NULL || tn_vec_push(handle, &b->layers, results) != TN_OK)
    tn_builder_fail(handle, TN_ENOMEM);
}

/* The outputs of the latest layer whose first output is `first`. */
static const tn_layer_results *emit_find_layer(const tn_builder *b, tn_val first) {
  for (size_t i = b->layers.n; i-- > 0;)
    if (b->layers.v[i].values[0] == first) return &b->layers.v[i];
  return NULL;
}

static tn_status emit_result(tn_builder *b, tn_val first, int32_t index, tn_val *value) {
  const tn_graph *g = b->graph;
  if (first == 0 || first >= g->values.n)
    return tn_failf(g->env, TN_EINVAL, "tn_op_result: value %u is not of this graph", first);
  const tn_layer_results *layer = emit_find_layer(b, first);
  const tn_gnode *maker = tn_graph_maker(g, first);
  int32_t n = layer != NULL ? layer->n : maker->n_out;
  if (layer == NULL && g->values.v[first].result != 0)
    return tn_failf(g->env, TN_EINVAL,
                    "tn_op_result: the value given is result %d of %s, expected its first one",
                    g->values.v[first].result, maker->op->item.name);
  if (index < 0 || index >= n)
    return tn_failf(g->env, TN_EINVAL, "tn_op_result: result %d of %s is asked for, expected 0 to %d", index,
                    layer != NULL ? "a layer" : maker->op->item.name, n - 1);
  *value = layer != NULL ? layer->values[index] : first + (tn_val)index;
  return TN_OK;
}

tn_val tn_emit_result(tn_build *handle, tn_val first, int32_t index) {
  tn_builder *b = tn_builder_of(handle);
  tn_val value = 0;
  if (b->status == TN_OK) tn_builder_stick(b, emit_result(b, first, index, &value));
  return value;
}
