/* core/graph/gradient/gradient_sum.c: sums of gradients. Each slice of a tensor contributes a gradient padded
 * with zeros to the size of the tensor; the gradients of adjoining slices are concatenated instead of added.
 */
#include "core/graph/gradient/gradient.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

/* A value that a pad extends with zeros along one dimension. */
typedef struct gradient_piece {
  tn_val value;
  int32_t axis;
  int64_t low, high, size;
} gradient_piece;

static bool piece_has_gaps(const tn_ints *inner) {
  for (int64_t i = 0; i < inner->n; i++)
    if (inner->v[i] != 0) return true;
  return false;
}

static bool piece_find(const tn_graph *g, tn_val v, gradient_piece *p) {
  if (!tn_graph_is(g, v, "pad")) return false;
  const tn_gnode *node = tn_graph_maker(g, v);
  const tn_pad_attributes *a = node->attributes;
  int32_t axes = 0;
  if (piece_has_gaps(&a->inner)) return false;
  *p = (gradient_piece){.value = node->in[0]};
  for (int32_t i = 0; i < tn_graph_type(g, v)->rank; i++) {
    if (a->low.v[i] == 0 && a->high.v[i] == 0) continue;
    p->axis = i;
    axes++;
  }
  if (axes != 1) return false;
  p->low = a->low.v[p->axis];
  p->high = a->high.v[p->axis];
  p->size = tn_graph_type(g, p->value)->dims[p->axis];
  return true;
}

/* The operands of an earlier concatenation become operands of the new one. */
static void piece_add_operands(tn_build *b, const gradient_piece *p) {
  const tn_graph *g = tn_builder_graph(b);
  const tn_gnode *node = tn_graph_maker(g, p->value);
  const tn_axis_attributes *a = node->attributes;
  bool joined = tn_graph_is(g, p->value, "concat") && a->axis == p->axis;
  for (int32_t i = 0; joined && i < node->n_in; i++) tn_op_arg(b, node->in[i]);
  if (!joined) tn_op_arg(b, p->value);
}

static tn_val piece_concat(tn_build *b, const gradient_piece *first, const gradient_piece *second) {
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0};
  int32_t rank = tn_graph_type(tn_builder_graph(b), first->value)->rank;
  tn_op_begin(b, "concat");
  piece_add_operands(b, first);
  piece_add_operands(b, second);
  tn_op_set_int(b, "axis", first->axis);
  tn_val both = tn_op_end(b);
  if (first->low == 0 && second->high == 0) return both;
  low[first->axis] = first->low;
  high[first->axis] = second->high;
  return tn_pad(b, both, rank, low, rank, high, 0, NULL);
}

tn_val tn_gradient_sum(tn_build *b, tn_val x, tn_val y) {
  const tn_graph *g = tn_builder_graph(b);
  gradient_piece p, q;
  if (piece_find(g, x, &p) && piece_find(g, y, &q) && p.axis == q.axis) {
    if (p.low + p.size == q.low) return piece_concat(b, &p, &q);
    if (q.low + q.size == p.low) return piece_concat(b, &q, &p);
  }
  return tn_add(b, x, y);
}
