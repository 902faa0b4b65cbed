/* core/ops/collective.c: collectives: every rank runs the op at the same time, on its own operand. A
 * communicator (plugin/communicator.h) transports the elements. All ranks run the same graph, hence the
 * collectives in the same order. */
#include "core/ops/common.h"

/* ---- all_reduce ---- */

static tn_status collective_check_reduction(const tn_infer *n, const char *op, int32_t reduction) {
  int32_t dtype = n->node.in[0]->dtype;
  if (reduction != TN_REDUCTION_MEAN || tn_dtype_is_float(dtype)) return TN_OK;
  return tn_fail(n, TN_EINVAL, "reduction", "%s: the mean of %s, expected f16, bf16, f32 or f64", op,
                 tn_dtype_name(dtype));
}

static tn_status all_reduce_infer(tn_infer *n) {
  const tn_all_reduce_attributes *a = n->node.attributes;
  n->node.out[0] = *n->node.in[0];
  return collective_check_reduction(n, "all_reduce", a->reduction);
}

/* How the ranks' gradients of results are combined to the gradient of an operand. */
static int32_t collective_grad_reduction(int32_t reduction) {
  return reduction == TN_REDUCTION_MEAN ? TN_REDUCTION_MEAN : TN_REDUCTION_SUM;
}

static bool collective_is_extreme(int32_t reduction) {
  return reduction == TN_REDUCTION_MIN || reduction == TN_REDUCTION_MAX;
}

/* The differentiated function is the sum of the ranks' losses. Every rank's result depends on this rank's
 * operand, so dx is the sum of all dy. A mean divides by the ranks, so dx is the mean of all dy. For a
 * minimum or maximum, dx is 0 where x differs from the result. */
static tn_status all_reduce_grad(tn_build *b, const void *attributes) {
  const tn_all_reduce_attributes *a = attributes;
  tn_val dy = tn_build_out_grad(b, 0), x = tn_build_in(b, 0);
  tn_val dx = tn_all_reduce(b, dy, collective_grad_reduction(a->reduction));
  if (collective_is_extreme(a->reduction))
    dx = tn_where(b, tn_eq(b, x, tn_build_out(b, 0)), dx, tn_ops_zero(b, x));
  tn_build_yield(b, 0, dx);
  return TN_OK;
}

static const tn_option all_reduce_options[] = {
    TN_OPT(tn_all_reduce_attributes, reduction, TN_OPT_ENUM, "sum", "sum|min|max|mean",
           "how the ranks' elements are combined; mean: of floats"),
    TN_OPT_END};

const tn_op tn_op_all_reduce = {
    .item = TN_ITEM(tn_op, TN_OP, "all_reduce", "sum, mean or extreme over ranks, element by element",
                    tn_all_reduce_attributes, all_reduce_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_NUMBERS,
    .op_class = TN_CLASS_OTHER,
    .infer = all_reduce_infer,
    .grad = all_reduce_grad,
};

/* ---- reduce_scatter ---- */

static tn_status collective_need_dimension(const tn_infer *n, const char *op) {
  if (n->node.in[0]->rank > 0) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "%s: the operand is a scalar, expected at least one dimension", op);
}

static tn_status reduce_scatter_infer(tn_infer *n) {
  const tn_reduce_scatter_attributes *a = n->node.attributes;
  TN_TRY(collective_need_dimension(n, "reduce_scatter"));
  TN_TRY(collective_check_reduction(n, "reduce_scatter", a->reduction));
  tn_type *y = n->node.out;
  *y = *n->node.in[0];
  if (y->dims[0] % a->ranks != 0)
    return tn_fail(n, TN_EINVAL, "ranks",
                   "reduce_scatter: dimension 0 is %lld, expected a multiple of the %lld ranks",
                   (long long)y->dims[0], (long long)a->ranks);
  y->dims[0] /= a->ranks;
  return TN_OK;
}

/* The differentiated function is the sum of the ranks' losses, as for all_reduce: the parts of dy, together,
 * are the gradient of every rank's operand, of a mean divided by the ranks. */
static tn_status reduce_scatter_grad(tn_build *b, const void *attributes) {
  const tn_reduce_scatter_attributes *a = attributes;
  tn_val dx = tn_all_gather(b, tn_build_out_grad(b, 0), a->ranks), x = tn_build_in(b, 0);
  if (a->reduction == TN_REDUCTION_MEAN)
    dx = tn_div(b, dx, tn_scalar(b, tn_val_type(b, x)->dtype, (double)a->ranks));
  if (collective_is_extreme(a->reduction))
    dx = tn_where(b, tn_eq(b, x, tn_all_gather(b, tn_build_out(b, 0), a->ranks)), dx, tn_ops_zero(b, x));
  tn_build_yield(b, 0, dx);
  return TN_OK;
}

static const tn_option reduce_scatter_options[] = {
    TN_OPT(tn_reduce_scatter_attributes, ranks, TN_OPT_INT, "1", ">= 1", "number of ranks of the run"),
    TN_OPT(tn_reduce_scatter_attributes, reduction, TN_OPT_ENUM, "sum", "sum|min|max|mean",
           "how the ranks' elements are combined; mean: of floats"),
    TN_OPT_END};

const tn_op tn_op_reduce_scatter = {
    .item = TN_ITEM(tn_op, TN_OP, "reduce_scatter",
                    "sum, mean or extreme over ranks, of which each rank gets its part of dimension 0",
                    tn_reduce_scatter_attributes, reduce_scatter_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_NUMBERS,
    .op_class = TN_CLASS_OTHER,
    .infer = reduce_scatter_infer,
    .grad = reduce_scatter_grad,
    .notes = "Rank r gets the r-th of `ranks` equal parts. Dimension 0 is a multiple of `ranks`, which is "
             "tn_build_ranks(b).",
};

/* ---- all_gather ---- */

static tn_status all_gather_infer(tn_infer *n) {
  const tn_all_gather_attributes *a = n->node.attributes;
  TN_TRY(collective_need_dimension(n, "all_gather"));
  tn_type *y = n->node.out;
  *y = *n->node.in[0];
  if (y->dims[0] > INT64_MAX / a->ranks)
    return tn_fail(n, TN_EINVAL, "ranks", "all_gather: the result would have more than 2^63 elements");
  y->dims[0] *= a->ranks;
  return TN_OK;
}

/* Every rank's result contains this rank's operand. */
static tn_status all_gather_grad(tn_build *b, const void *attributes) {
  const tn_all_gather_attributes *a = attributes;
  tn_build_yield(b, 0, tn_reduce_scatter(b, tn_build_out_grad(b, 0), a->ranks, TN_REDUCTION_SUM));
  return TN_OK;
}

static const tn_option all_gather_options[] = {
    TN_OPT(tn_all_gather_attributes, ranks, TN_OPT_INT, "1", ">= 1", "number of ranks of the run"),
    TN_OPT_END};

const tn_op tn_op_all_gather = {
    .item = TN_ITEM(tn_op, TN_OP, "all_gather", "the operands of all ranks, joined along dimension 0",
                    tn_all_gather_attributes, all_gather_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_NUMBERS,
    .op_class = TN_CLASS_OTHER,
    .infer = all_gather_infer,
    .grad = all_gather_grad,
    .notes = "The operands are in the order of ranks. `ranks` is tn_build_ranks(b).",
};
