/* core/graph/loop/sums.c: sums over the steps of a loop, outside of it. */
#include "core/graph/loop/sums.h"

#include "tenon/attributes.h"
#include "tenon/ops.h"

/* ---- rows of all steps ---- */

static const tn_loop_value *sums_find(const tn_loop_values *values, tn_val inner) {
  for (size_t i = 0; i < values->n; i++)
    if (values->v[i].inner == inner) return &values->v[i];
  return NULL;
}

/* The values that the other loop had in front of its steps: the first one, and its values behind all steps
 * but the last. */
static tn_val sums_values_before(tn_build *b, const tn_loop_parts *parts, const tn_loop_value *before) {
  const tn_type first = tn_loop_stacked_type(tn_val_type(b, before->outer), 1);
  tn_val one = tn_reshape(b, before->outer, first.rank, first.dims);
  int64_t from = parts->reverse ? 0 : 1;
  if (parts->steps == 1) return one;
  tn_val rest = tn_slice_axis(b, before->stack, 0, from, from + parts->steps - 1);
  const tn_val both[] = {parts->reverse ? one : rest, parts->reverse ? rest : one};
  return tn_concat(b, 2, both, 0);
}

static tn_status sums_add_output(tn_loop_parts *parts, tn_val v, int32_t *output) {
  for (size_t i = 0; i < parts->outputs.n; i++)
    if (parts->outputs.v[i] == v) return *output = (int32_t)i, TN_OK;
  *output = (int32_t)parts->outputs.n;
  return tn_vec_push(parts->from->env, &parts->outputs, v);
}

static tn_status sums_rows(tn_build *b, tn_loop_parts *parts, tn_val v, tn_loop_rows *rows) {
  const tn_loop_value *sequence = sums_find(&parts->sequences, v), *before = sums_find(&parts->before, v);
  *rows = (tn_loop_rows){-1, 0};
  if (sequence != NULL) rows->outer = sequence->outer;
  if (before != NULL) rows->outer = sums_values_before(b, parts, before);
  return rows->outer == 0 ? sums_add_output(parts, v, &rows->output) : tn_build_status(b);
}

/* ---- finding ---- */

static bool sums_is_present(const tn_gnode *node, int32_t operand) {
  return operand < node->n_in && node->in[operand] != 0;
}

static bool sums_is_product(const tn_graph *g, const tn_gnode *node) {
  const tn_matmul_attributes *a = node->attributes;
  return tn_graph_is(g, node->first_out, "matmul") && a->transpose_a && !a->transpose_b &&
         !sums_is_present(node, 2) && tn_graph_type(g, node->in[0])->rank == 2 &&
         tn_graph_type(g, node->in[1])->rank == 2;
}

/* The axes of the stacked operand. */
static void sums_take_axes(const tn_graph *g, const tn_gnode *node, tn_loop_sum *sum) {
  const tn_reduce_attributes *a = node->attributes;
  int32_t rank = tn_graph_type(g, node->in[0])->rank;
  sum->axes[sum->n_axes++] = 0;
  for (int32_t i = 0; i < (a->axes.n > 0 ? a->axes.n : rank); i++) {
    int64_t axis = a->axes.n > 0 ? a->axes.v[i] : i;
    sum->axes[sum->n_axes++] = (axis < 0 ? axis + rank : axis) + 1;
  }
}

tn_status tn_loop_sum_find(tn_build *b, tn_loop_parts *parts, tn_val part, bool *found, tn_loop_sum *sum) {
  const tn_graph *g = parts->from;
  *sum = (tn_loop_sum){.type = *tn_graph_type(g, part)};
  while (tn_graph_is(g, part, "reshape")) part = tn_graph_maker(g, part)->in[0];
  const tn_gnode *node = tn_graph_maker(g, part);
  sum->product = sums_is_product(g, node);
  *found = sum->product ||
           (tn_graph_is(g, part, "reduce_sum") && tn_graph_type(g, node->in[0])->rank < TN_MAX_RANK);
  if (!*found) return TN_OK;
  TN_TRY(sums_rows(b, parts, node->in[0], &sum->left));
  if (sum->product) {
    sum->math = ((const tn_matmul_attributes *)node->attributes)->math;
    return sums_rows(b, parts, node->in[1], &sum->right);
  }
  sums_take_axes(g, node, sum);
  return TN_OK;
}

/* ---- emitting ---- */

static tn_val sums_value(tn_build *b, const tn_loop_rows *rows, tn_val first) {
  return rows->output >= 0 ? tn_op_result(b, first, rows->output) : rows->outer;
}

/* [steps, rows, n] as a matrix. */
static tn_val sums_matrix(tn_build *b, tn_val all) {
  const tn_type *type = tn_val_type(b, all);
  const int64_t dims[] = {type->dims[0] * type->dims[1], type->dims[2]};
  return tn_reshape(b, all, 2, dims);
}

tn_val tn_loop_sum_emit(tn_build *b, const tn_loop_sum *sum, tn_val first) {
  tn_val left = sums_value(b, &sum->left, first), made;
  if (sum->product)
    made = tn_matmul(b, sums_matrix(b, left), sums_matrix(b, sums_value(b, &sum->right, first)), 0, 1, 0,
                     sum->math);
  else
    made = tn_reduce_sum(b, left, sum->n_axes, sum->axes, 0);
  return tn_reshape(b, made, sum->type.rank, sum->type.dims);
}
