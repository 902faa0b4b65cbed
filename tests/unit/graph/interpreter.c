/* tests/unit/graph/interpreter.c: values of a graph in f64. */
#include "tests/unit/graph/interpreter.h"

#include <math.h>

#include "core/graph/input_state.h"

/* Offset in an operand of the element that broadcasts to element i of the result. */
static int64_t offset_in(const tn_type *operand, const tn_type *result, int64_t i) {
  int64_t offset = 0, stride = 1;
  for (int32_t d = 1; d <= result->rank; d++) {
    int64_t index = i % result->dims[result->rank - d];
    i /= result->dims[result->rank - d];
    if (d > operand->rank) continue;
    if (operand->dims[operand->rank - d] != 1) offset += index * stride;
    stride *= operand->dims[operand->rank - d];
  }
  return offset;
}

static double apply(const tn_gnode *node, int32_t result, const double *x) {
  const char *op = node->op->item.name;
  const tn_affine_attributes *a = node->attributes;
  if (strcmp(op, "add") == 0) return x[0] + x[1];
  if (strcmp(op, "sub") == 0) return x[0] - x[1];
  if (strcmp(op, "mul") == 0) return x[0] * x[1];
  if (strcmp(op, "neg") == 0) return -x[0];
  if (strcmp(op, "exp") == 0) return exp(x[0]);
  if (strcmp(op, "gt") == 0) return x[0] > x[1];
  if (strcmp(op, "where") == 0) return x[0] != 0 ? x[1] : x[2];
  if (strcmp(op, "affine") == 0) return a->scale * x[0] + a->shift;
  if (strcmp(op, "cast") == 0 || strcmp(op, "broadcast") == 0) return x[0];
  if (strcmp(op, "sincos") == 0) return result == 0 ? sin(x[0]) : cos(x[0]);
  if (strcmp(op, "square") == 0) return x[0] * x[0];
  if (strcmp(op, "fourth") == 0) return x[0] * x[0] * x[0] * x[0];
  if (strcmp(op, "full") == 0) return ((const tn_full_attributes *)node->attributes)->value;
  if (strcmp(op, "parabola") == 0) return *(const double *)node->attributes * x[0] * x[0] + x[0];
  if (strcmp(op, "products") == 0) return result == 0 ? x[0] * x[1] : x[0] * x[1] * x[2];
  fail_msg("the interpreter does not know %s", op);
  return 0;
}

static void pointwise(const evaluation *e, const tn_gnode *node, int32_t result) {
  tn_val out = node->first_out + (tn_val)result;
  const tn_type *type = tn_graph_type(e->graph, out);
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double x[4] = {0};
    for (int32_t k = 0; k < node->n_in; k++)
      x[k] = e->v[node->in[k]][offset_in(tn_graph_type(e->graph, node->in[k]), type, i)];
    e->v[out][i] = apply(node, result, x);
  }
}

/* Adds every element of the operand to the element of the result that would broadcast to it. */
static void reduce_sum(const evaluation *e, const tn_gnode *node) {
  const tn_reduce_attributes *a = node->attributes;
  const tn_type *x = tn_graph_type(e->graph, node->in[0]);
  tn_type kept = *x;
  for (int64_t i = 0; i < a->axes.n; i++) kept.dims[a->axes.v[i]] = 1;
  for (int32_t i = 0; i < x->rank && a->axes.n == 0; i++) kept.dims[i] = 1;
  for (int64_t i = 0; i < tn_type_count(x); i++)
    e->v[node->first_out][offset_in(&kept, x, i)] += e->v[node->in[0]][i];
}

static const double *bound(const tn_gnode *node, const binding *bindings, int32_t n) {
  const char *name = node->op == &tn_op_input ? ((const tn_input_attributes *)node->attributes)->name
                                              : ((const tn_state_attributes *)node->attributes)->path;
  for (int32_t i = 0; i < n; i++)
    if (strcmp(bindings[i].name, name) == 0) return bindings[i].data;
  fail_msg("nothing is bound to %s", name);
  return NULL;
}

static void run(const evaluation *e, const tn_gnode *node, const binding *bindings, int32_t n) {
  size_t bytes = (size_t)tn_type_count(tn_graph_type(e->graph, node->first_out)) * sizeof(double);
  if (tn_op_is_input_or_state(node->op))
    memcpy(e->v[node->first_out], bound(node, bindings, n), bytes);
  else if (strcmp(node->op->item.name, "reshape") == 0)
    memcpy(e->v[node->first_out], e->v[node->in[0]], bytes);
  else if (strcmp(node->op->item.name, "reduce_sum") == 0)
    reduce_sum(e, node);
  else
    for (int32_t i = 0; i < node->n_out; i++) pointwise(e, node, i);
}

evaluation evaluate(const tn_graph *graph, const binding *bindings, int32_t n) {
  evaluation e = {graph, calloc(graph->values.n, sizeof(double *))};
  for (size_t v = 1; v < graph->values.n; v++)
    e.v[v] = calloc((size_t)tn_type_count(tn_graph_type(graph, (tn_val)v)) + 1, sizeof(double));
  for (size_t i = 0; i < graph->nodes.n; i++) run(&e, &graph->nodes.v[i], bindings, n);
  return e;
}

void evaluation_free(evaluation *e) {
  for (size_t v = 1; v < e->graph->values.n; v++) free(e->v[v]);
  free(e->v);
}
