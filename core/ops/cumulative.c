/* core/ops/cumulative.c: sums, products and extremes of the elements up to each one along an axis. f16, bf16
 * are accumulated in f32 at least. */
#include "core/ops/common.h"

static tn_status cumulative_infer(tn_infer *n) {
  const tn_cumulative_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  int32_t axis;
  n->node.out[0] = *x;
  if (a->mode == TN_CUMULATIVE_LOGSUMEXP && !tn_dtype_is_float(x->dtype))
    return tn_fail(n, TN_EINVAL, "mode", "x is %s, expected a float type for mode logsumexp",
                   tn_ops_text(x).v);
  if (a->exclusive && a->mode != TN_CUMULATIVE_SUM && a->mode != TN_CUMULATIVE_PROD)
    return tn_fail(n, TN_EINVAL, "exclusive", "exclusive is yes, expected mode sum or prod with it");
  return tn_ops_check_axis(n, a->axis, x->rank, &axis);
}

/* x accumulated in the direction of the attributes; `other`: against it. */
static tn_val cumulative_emit(tn_build *b, const tn_cumulative_attributes *a, tn_val x, int32_t mode,
                              bool other) {
  bool exclusive = a->exclusive && (mode == TN_CUMULATIVE_SUM || mode == TN_CUMULATIVE_PROD);
  return tn_cumulative(b, x, a->axis, mode, exclusive, other ? !a->reverse : a->reverse);
}

/* ---- gradients ---- */

static tn_val cumulative_grad_sum(tn_build *b, const tn_cumulative_attributes *a) {
  return cumulative_emit(b, a, tn_build_out_grad(b, 0), TN_CUMULATIVE_SUM, true);
}

/* dx = (the sum of dy y over the products with x) / x in front of the first 0. For the first 0 the products
 * are those with 1 in its place; those with later elements are 0. */
static tn_val cumulative_grad_prod(tn_build *b, const tn_cumulative_attributes *a) {
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0)), dy = tn_ops_wide(b, tn_build_out_grad(b, 0));
  tn_val zero = tn_ops_zero(b, x), one = tn_scalar(b, tn_val_type(b, x)->dtype, 1);
  tn_val is_zero = tn_eq(b, x, zero);
  tn_val zeros = tn_cumulative(b, tn_to_dtype(b, is_zero, TN_I32), a->axis, TN_CUMULATIVE_SUM, 0, a->reverse);
  tn_val before = tn_eq(b, zeros, tn_scalar(b, TN_I32, 0));
  tn_val first = tn_and(b, is_zero, tn_eq(b, zeros, tn_scalar(b, TN_I32, 1)));
  tn_val filled = tn_where(b, first, one, x);
  tn_val y = cumulative_emit(b, a, x, TN_CUMULATIVE_PROD, false),
         y_filled = cumulative_emit(b, a, filled, TN_CUMULATIVE_PROD, false);
  tn_val sum = cumulative_emit(b, a, tn_mul(b, dy, y), TN_CUMULATIVE_SUM, true),
         sum_filled = cumulative_emit(b, a, tn_mul(b, dy, y_filled), TN_CUMULATIVE_SUM, true);
  tn_val quotient = tn_div(b, sum, tn_where(b, before, x, one));
  return tn_where(b, before, quotient, tn_where(b, first, sum_filled, zero));
}

/* The position of the extreme that each element of y is: the last one of equals. NaN is an extreme. */
static tn_val cumulative_positions(tn_build *b, const tn_cumulative_attributes *a, tn_val x, tn_val y) {
  tn_type type = tn_ops_type(b, x);
  int64_t last = tn_val_dim(b, x, (int32_t)a->axis) - 1;
  type.dtype = TN_I32;
  tn_val is_extreme = tn_or(b, tn_eq(b, x, y), tn_ne(b, x, x));
  tn_val position = tn_where(b, is_extreme, tn_iota(b, &type, a->axis),
                             tn_scalar(b, TN_I32, a->reverse ? (double)last : 0));
  return tn_cumulative(b, position, a->axis, a->reverse ? TN_CUMULATIVE_MIN : TN_CUMULATIVE_MAX, 0,
                       a->reverse);
}

static tn_val cumulative_grad_extreme(tn_build *b, const tn_cumulative_attributes *a) {
  tn_val x = tn_build_in(b, 0), dy = tn_ops_wide(b, tn_build_out_grad(b, 0));
  tn_type type = tn_ops_type(b, dy);
  tn_val position = cumulative_positions(b, a, x, tn_build_out(b, 0));
  return tn_scatter(b, tn_full(b, &type, 0), position, dy, a->axis, TN_SCATTER_ADD);
}

/* exp(x) times the sum of dy exp(-y), computed in logarithms, apart for dy of either sign. y is computed anew
 * from half floats: exp(-y) has the rounding of y as its relative error. */
static tn_val cumulative_grad_logsumexp(tn_build *b, const tn_cumulative_attributes *a) {
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  tn_val y =
      x == tn_build_in(b, 0) ? tn_build_out(b, 0) : cumulative_emit(b, a, x, TN_CUMULATIVE_LOGSUMEXP, false);
  tn_val dy = tn_ops_wide(b, tn_build_out_grad(b, 0)), zero = tn_ops_zero(b, dy), part[2];
  for (int i = 0; i < 2; i++) {
    tn_val size = tn_maximum(b, i == 0 ? dy : tn_neg(b, dy), zero);
    tn_val sum = cumulative_emit(b, a, tn_sub(b, tn_log(b, size), y), TN_CUMULATIVE_LOGSUMEXP, true);
    part[i] = tn_exp(b, tn_add(b, sum, x));
  }
  return tn_sub(b, part[0], part[1]);
}

static tn_status cumulative_grad(tn_build *b, const void *attributes) {
  static tn_val (*const rule[])(tn_build *, const tn_cumulative_attributes *) = {
      [TN_CUMULATIVE_SUM] = cumulative_grad_sum,
      [TN_CUMULATIVE_PROD] = cumulative_grad_prod,
      [TN_CUMULATIVE_MAX] = cumulative_grad_extreme,
      [TN_CUMULATIVE_MIN] = cumulative_grad_extreme,
      [TN_CUMULATIVE_LOGSUMEXP] = cumulative_grad_logsumexp};
  const tn_cumulative_attributes *a = attributes;
  tn_build_yield(b, 0, tn_to_dtype(b, rule[a->mode](b, a), tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

/* ---- descriptors ---- */

static void cumulative_cost(const tn_node *n, tn_cost *cost) {
  const tn_cumulative_attributes *a = n->attributes;
  tn_ops_cost(n, cost, tn_ops_count(n->in[0]) * (a->mode == TN_CUMULATIVE_LOGSUMEXP ? 10 : 1));
}

#define CUMULATIVE_AXIS                                                                                      \
  TN_OPT(tn_cumulative_attributes, axis, TN_OPT_INT, "-1", NULL, "dimension to go along, -rank .. rank-1")
#define CUMULATIVE_DIRECTION                                                                                 \
  TN_OPT(tn_cumulative_attributes, reverse, TN_OPT_FLAG, "no", NULL, "from the last element to the first")
#define CUMULATIVE_EXCLUSIVE                                                                                 \
  TN_OPT(tn_cumulative_attributes, exclusive, TN_OPT_FLAG, "no", NULL,                                       \
         "leave out the element itself; for sum and prod")

static const tn_option cumulative_options[] = {CUMULATIVE_AXIS,
                                               TN_OPT(tn_cumulative_attributes, mode, TN_OPT_ENUM, "sum",
                                                      "sum|prod|max|min|logsumexp",
                                                      "what becomes of the elements"),
                                               CUMULATIVE_EXCLUSIVE, CUMULATIVE_DIRECTION, TN_OPT_END};

const tn_op tn_op_cumulative = {
    .item = TN_ITEM(tn_op, TN_OP, "cumulative", "of the elements up to each one along an axis",
                    tn_cumulative_attributes, cumulative_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_WIDENED,
    .op_class = TN_CLASS_REDUCE,
    .infer = cumulative_infer,
    .grad = cumulative_grad,
    .cost = cumulative_cost,
    .notes = "Sums and products of integers wrap. A NaN stays in all results behind it.",
};

/* ---- composites ---- */

static tn_status cumsum_decompose(tn_build *b, const void *attributes) {
  tn_build_yield(b, 0, cumulative_emit(b, attributes, tn_build_in(b, 0), TN_CUMULATIVE_SUM, false));
  return TN_OK;
}

static tn_status cumprod_decompose(tn_build *b, const void *attributes) {
  tn_build_yield(b, 0, cumulative_emit(b, attributes, tn_build_in(b, 0), TN_CUMULATIVE_PROD, false));
  return TN_OK;
}

static tn_status logcumsumexp_decompose(tn_build *b, const void *attributes) {
  tn_build_yield(b, 0, cumulative_emit(b, attributes, tn_build_in(b, 0), TN_CUMULATIVE_LOGSUMEXP, false));
  return TN_OK;
}

static tn_status cumulative_decompose_extreme(tn_build *b, const tn_cumulative_attributes *a, int32_t mode) {
  tn_val x = tn_build_in(b, 0), y = cumulative_emit(b, a, x, mode, false);
  tn_build_yield(b, 0, y);
  tn_build_yield(b, 1, cumulative_positions(b, a, x, y));
  return TN_OK;
}

static tn_status cummax_decompose(tn_build *b, const void *attributes) {
  return cumulative_decompose_extreme(b, attributes, TN_CUMULATIVE_MAX);
}

static tn_status cummin_decompose(tn_build *b, const void *attributes) {
  return cumulative_decompose_extreme(b, attributes, TN_CUMULATIVE_MIN);
}

static const tn_option cumsum_options[] = {CUMULATIVE_AXIS, CUMULATIVE_EXCLUSIVE, CUMULATIVE_DIRECTION,
                                           TN_OPT_END};
static const tn_option cummax_options[] = {CUMULATIVE_AXIS, CUMULATIVE_DIRECTION, TN_OPT_END};

#define CUMULATIVE_OP(name_, doc_, options_, schema_)                                                        \
  TN_OPS_COMPOSITE(name_, doc_, tn_cumulative_attributes, options_, TN_CLASS_REDUCE, schema_,                \
                   .cost = cumulative_cost)

CUMULATIVE_OP(cumsum, "sum of the elements up to each one", cumsum_options, "(x:T) -> (y:any)" TN_OPS_SUMS);
CUMULATIVE_OP(cumprod, "product of the elements up to each one", cumsum_options,
              "(x:T) -> (y:any)" TN_OPS_SUMS);
CUMULATIVE_OP(cummax, "largest element up to each one, and its index, the last of equals", cummax_options,
              "(x:T) -> (y:T, index:i32)" TN_OPS_WIDENED);
CUMULATIVE_OP(cummin, "smallest element up to each one, and its index, the last of equals", cummax_options,
              "(x:T) -> (y:T, index:i32)" TN_OPS_WIDENED);
CUMULATIVE_OP(logcumsumexp, "logarithm of the sum of the exponentials up to each one", cummax_options,
              "(x:T) -> (y:T)" TN_OPS_FLOATS);
