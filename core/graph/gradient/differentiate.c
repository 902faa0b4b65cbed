/* core/graph/gradient/differentiate.c: reverse mode. One walk over the nodes from the loss backward: all
 * users of a node come before it in the walk, so the gradients of its results are complete. */
#include <stdlib.h>

#include "core/graph/build/builder.h"
#include "core/graph/build/emit_formula.h"
#include "core/graph/gradient/gradient.h"
#include "tenon/ops.h"

typedef struct tape {
  tn_build *b;
  tn_graph *g;
  const bool *on_path;
  tn_val *gradient; /* for each value of the graph at the start */
  tn_arena scratch;
} tape;

/* ---- one node ---- */

static tn_status tape_check_gradient(const tape *t, const tn_gnode *node, int32_t i, tn_val gradient) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_type *given = tn_graph_type(t->g, gradient), *expected = tn_graph_type(t->g, node->in[i]);
  if (tn_type_equal(given, expected)) return TN_OK;
  return tn_failf(t->g->env, TN_EINTERNAL, "operand %s got %s, expected %s, the type of the operand",
                  tn_op_def_operand(node->def, i)->name, tn_type_format(given, one),
                  tn_type_format(expected, other));
}

/* Adds in the order of the walk and of the operands: the order of summation is deterministic. */
static tn_status tape_accumulate(tape *t, const tn_gnode *node, const bool *want, const tn_val *yielded) {
  for (int32_t i = 0; i < node->n_in; i++) {
    if (!want[i] || yielded[i] == 0) continue;
    TN_TRY(tape_check_gradient(t, node, i, yielded[i]));
    tn_val *sum = &t->gradient[node->in[i]];
    *sum = *sum != 0 ? tn_gradient_sum(t->b, *sum, yielded[i]) : yielded[i];
  }
  return tn_build_status(t->b);
}

static tn_status tape_call_rule(tape *t, const tn_gnode *node, tn_build_frame *frame, bool *want) {
  for (int32_t i = 0; i < node->n_in; i++) want[i] = node->in[i] != 0 && t->on_path[node->in[i]];
  frame->want = want;
  tn_builder_push(t->b, frame);
  tn_status status = node->op->grad != NULL
                         ? node->op->grad(t->b, node->attributes)
                         : tn_formula_emit_gradient(t->b, &node->def->gradient, node->attributes);
  if (tn_build_status(t->b) != TN_OK) status = tn_build_status(t->b);
  if (status == TN_OK) status = tape_accumulate(t, node, want, frame->yielded);
  tn_builder_wrap(t->b, status, "gradient", node->op->item.name);
  tn_builder_pop(t->b);
  return status != TN_OK ? status : tn_build_status(t->b);
}

/* Computes the gradients of the operands from those of the results. */
static tn_status tape_walk_node(tape *t, const tn_gnode *node) {
  const tn_build_frame *outer = tn_builder_frame(t->b);
  size_t n_in = (size_t)node->n_in, n_out = (size_t)node->n_out;
  tn_val *values = tn_arena_alloc(&t->scratch, (n_in + n_out) * sizeof *values);
  bool *want = tn_arena_alloc(&t->scratch, n_in);
  if (values == NULL || want == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n_out; i++) values[n_in + i] = node->first_out + (tn_val)i;
  tn_build_frame frame = {.in = node->in,
                          .n_in = node->n_in,
                          .out = values + n_in,
                          .dout = t->gradient + node->first_out,
                          .n_out = node->n_out,
                          .yielded = values,
                          .n_yield = node->n_in,
                          .prefix = node->layer,
                          .where = node->where,
                          .training = outer->training,
                          .seed = outer->seed};
  return tape_call_rule(t, node, &frame, want);
}

static bool tape_has_gradient(const tape *t, const tn_gnode *node) {
  for (int32_t i = 0; i < node->n_out; i++)
    if (t->gradient[node->first_out + (tn_val)i] != 0) return true;
  return false;
}

static tn_status tape_walk(tape *t, size_t last) {
  for (size_t i = last + 1; i-- > 0;) {
    tn_gnode node = t->g->nodes.v[i]; /* emitting moves the nodes */
    if (tape_has_gradient(t, &node) && tn_gradient_passes(&node, t->on_path))
      TN_TRY(tape_walk_node(t, &node));
  }
  return TN_OK;
}

/* ---- the ends ---- */

/* The gradient of an end, to which several seeds may belong. */
static tn_status tape_start(tape *t, tn_val loss, tn_val seed) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  const tn_type *type = t->g->types.v[loss];
  if (!t->on_path[loss]) return TN_OK; /* no gradient reaches any of wrt */
  if (seed == 0) seed = tn_scalar(t->b, type->dtype, 1);
  TN_TRY(tn_build_status(t->b));
  if (seed >= t->g->values.n || !tn_type_equal(tn_graph_type(t->g, seed), type))
    return tn_failf(t->g->env, TN_EINVAL, "differentiate: the loss is %s, but its gradient is given as %s",
                    tn_type_format(type, one), tn_type_format(tn_emit_type(t->b, seed), other));
  t->gradient[loss] = t->gradient[loss] != 0 ? tn_gradient_sum(t->b, t->gradient[loss], seed) : seed;
  return tn_build_status(t->b);
}

/* A gradient is ready when the node that computes it has run; absent gradients come last. */
typedef struct tape_ready {
  uint64_t node;
  int32_t index;
} tape_ready;

static int tape_compare_ready(const void *left, const void *right) {
  const tape_ready *a = left, *b = right;
  if (a->node != b->node) return a->node < b->node ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

static tn_status tape_sort_by_readiness(tape *t, const tn_val *gradient, int32_t n, int32_t *order) {
  tape_ready *ready = tn_arena_alloc(&t->scratch, tn_size_mul((size_t)n, sizeof *ready));
  if (ready == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++)
    ready[i] = (tape_ready){gradient[i] != 0 ? t->g->values.v[gradient[i]].node : UINT64_MAX, i};
  qsort(ready, (size_t)n, sizeof *ready, tape_compare_ready);
  for (int32_t i = 0; i < n; i++) order[i] = ready[i].index;
  return TN_OK;
}

static tn_status tape_run(tape *t, const tn_gradient_ends *ends, const tn_val *seeds, const tn_val *wrt,
                          int32_t n, tn_val *gradient) {
  bool *on_path = NULL;
  TN_TRY(tn_gradient_path(t->g, ends, wrt, n, &on_path));
  t->on_path = on_path;
  size_t last = tn_gradient_last_node(t->g, ends);
  t->gradient = tn_arena_alloc(&t->scratch, tn_size_mul(t->g->values.n, sizeof *t->gradient));
  tn_status status = t->gradient != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t i = 0; i < ends->n && status == TN_OK; i++) status = tape_start(t, ends->v[i], seeds[i]);
  if (status == TN_OK) status = tape_walk(t, last);
  for (int32_t i = 0; i < n && status == TN_OK; i++) gradient[i] = t->gradient[wrt[i]];
  tn_release(t->g->env, on_path);
  return status;
}

static tn_status tape_differentiate(tn_build *b, const tn_gradient_ends *given, const tn_val *seeds,
                                    const tn_val *wrt, int32_t n, tn_val *gradient, int32_t *order) {
  tape t = {.b = b, .g = tn_builder_graph(b), .scratch = tn_arena_new(b)};
  tn_val *copy = tn_arena_copy(&t.scratch, wrt, (size_t)n * sizeof *wrt);
  tn_gradient_ends ends = {tn_arena_copy(&t.scratch, given->v, (size_t)given->n * sizeof *given->v),
                           given->n};
  tn_status status = copy != NULL && ends.v != NULL ? tn_expand_between(b, &ends, copy, n) : TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) gradient[i] = 0;
  if (status == TN_OK) status = tape_run(&t, &ends, seeds, copy, n, gradient);
  if (status == TN_OK && order != NULL) status = tape_sort_by_readiness(&t, gradient, n, order);
  tn_arena_free(&t.scratch);
  tn_builder_fail(b, status);
  return status;
}

tn_status tn_vector_jacobian(tn_build *b, const tn_val *ends, const tn_val *seeds, int32_t n_ends,
                             const tn_val *wrt, int32_t n, tn_val *gradient) {
  const tn_gradient_ends given = {(tn_val *)(uintptr_t)ends, n_ends};
  return tape_differentiate(b, &given, seeds, wrt, n, gradient, NULL);
}

static tn_status tape_check_loss(const tn_graph *g, tn_val loss) {
  char type[TN_TYPE_TEXT];
  if (loss == 0 || loss >= g->values.n || tn_graph_type(g, loss)->rank == 0) return TN_OK;
  return tn_failf(g->env, TN_EINVAL, "differentiate: the loss is %s, expected a float scalar such as f32[]",
                  tn_type_format(tn_graph_type(g, loss), type));
}

tn_status tn_differentiate(tn_build *b, tn_val loss, tn_val seed, const tn_val *wrt, int32_t n,
                           tn_val *gradient, int32_t *order) {
  const tn_gradient_ends ends = {&loss, 1};
  tn_status status = tn_build_status(b);
  if (status == TN_OK) status = tape_check_loss(tn_builder_graph(b), loss);
  if (status == TN_OK) return tape_differentiate(b, &ends, &seed, wrt, n, gradient, order);
  for (int32_t i = 0; i < n; i++) gradient[i] = 0;
  tn_builder_fail(b, status);
  return status;
}
