/* core/ops/sort.c: sorted elements along an axis, and ops that read a part of them. Sorts are stable, and NaN
 * is larger than every number. */
#include "core/ops/common.h"

/* y and index have the dims of x, with `k` elements along the axis; k < 0: all. */
static tn_status sort_infer_prefix(tn_infer *n, const tn_sort_attributes *a, int64_t k) {
  const tn_type *x = n->node.in[0];
  int32_t axis;
  TN_TRY(tn_ops_check_axis(n, a->axis, x->rank, &axis));
  if (k > x->dims[axis])
    return tn_fail(n, TN_EINVAL, "k", "k is %lld, but dimension %d of x, %s, has %lld elements", (long long)k,
                   (int)axis, tn_ops_text(x).v, (long long)x->dims[axis]);
  if (x->dims[axis] > INT32_MAX)
    return tn_fail(n, TN_EINVAL, "axis", "x is %s: dimension %d has more elements than an i32 counts",
                   tn_ops_text(x).v, (int)axis);
  n->node.out[0] = *x;
  if (k >= 0) n->node.out[0].dims[axis] = k;
  n->node.out[1] = n->node.out[0];
  n->node.out[1].dtype = TN_I32;
  return TN_OK;
}

static tn_status sort_infer(tn_infer *n) { return sort_infer_prefix(n, n->node.attributes, -1); }

/* The indices of a position along the axis are distinct, so each element has one update at most. */
static tn_status sort_grad(tn_build *b, const void *attributes) {
  const tn_sort_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val dy = tn_build_out_grad(b, 0);
  if (dy != 0)
    tn_build_yield(b, 0, tn_scatter(b, tn_full(b, &x, 0), tn_build_out(b, 1), dy, a->axis, TN_SCATTER_SET));
  return TN_OK;
}

/* A comparison for each element and bit of the number of elements along the axis. */
static void sort_cost(const tn_node *n, tn_cost *cost) {
  const tn_sort_attributes *a = n->attributes;
  int64_t size = n->in[0]->dims[tn_ops_axis(a->axis, n->in[0]->rank)];
  double bits = 1;
  while (size >>= 1) bits++;
  tn_ops_cost(n, cost, bits * tn_ops_count(n->in[0]));
}

#define SORT_AXIS                                                                                            \
  TN_OPT(tn_sort_attributes, axis, TN_OPT_INT, "-1", NULL, "dimension to sort along, -rank .. rank-1")

static const tn_option sort_options[] = {
    SORT_AXIS, TN_OPT(tn_sort_attributes, descending, TN_OPT_FLAG, "no", NULL, "the largest element first"),
    TN_OPT_END};

const tn_op tn_op_sort = {
    .item =
        TN_ITEM(tn_op, TN_OP, "sort", "the elements along an axis in ascending order, and where they were",
                tn_sort_attributes, sort_options),
    .schema = "(x:T) -> (y:T, index:i32)" TN_OPS_WIDENED,
    .op_class = TN_CLASS_INDEX,
    .infer = sort_infer,
    .grad = sort_grad,
    .cost = sort_cost,
    .notes = "y = gather(x, index). Equal elements keep their order, also in descending order. NaN is larger "
             "than every number.",
};

/* ---- topk ---- */

static tn_status topk_infer(tn_infer *n) {
  const tn_sort_attributes *a = n->node.attributes;
  return sort_infer_prefix(n, a, a->k);
}

static tn_val topk_prefix(tn_build *b, tn_val v, const tn_sort_attributes *a) {
  return tn_slice_axis(b, v, tn_ops_axis(a->axis, tn_val_type(b, v)->rank), 0, a->k);
}

static tn_status topk_decompose(tn_build *b, const void *attributes) {
  const tn_sort_attributes *a = attributes;
  tn_val y = tn_sort(b, tn_build_in(b, 0), a->axis, a->largest);
  tn_build_yield(b, 0, topk_prefix(b, y, a));
  tn_build_yield(b, 1, topk_prefix(b, tn_op_result(b, y, 1), a));
  return TN_OK;
}

static const tn_option topk_options[] = {
    TN_OPT(tn_sort_attributes, k, TN_OPT_INT, NULL, ">= 0", "how many elements"), SORT_AXIS,
    TN_OPT(tn_sort_attributes, largest, TN_OPT_FLAG, "yes", NULL, "the largest elements; no: the smallest"),
    TN_OPT_END};

const tn_op tn_op_topk = {
    .item = TN_ITEM(tn_op, TN_OP, "topk", "the k largest elements along an axis, and where they were",
                    tn_sort_attributes, topk_options),
    .schema = "(x:T) -> (y:T, index:i32)" TN_OPS_WIDENED,
    .op_class = TN_CLASS_INDEX,
    .infer = topk_infer,
    .decompose = topk_decompose,
    .grad = sort_grad,
    .cost = sort_cost,
    .notes = "The first k elements of `sort`, in that order.",
};
