/* core/ops/reduce.c: reductions: sums, means, extremes, moments, and the test for finite elements. Sums over
 * f16 and bf16 are computed in f32, also if the result is f16 or bf16. */
#include "core/ops/common.h"

static tn_status reduce_infer(tn_infer *n) {
  const tn_reduce_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  bool reduced[TN_MAX_RANK];
  tn_status status = tn_ops_check_axes(n, &a->axes, x->rank, reduced);
  if (status == TN_OK) n->node.out[0] = tn_ops_reduced(x, reduced, a->keep);
  return status;
}

/* One flop for each element of the operand. */
static void reduce_cost(const tn_node *n, tn_cost *cost) { tn_ops_cost(n, cost, tn_ops_count(n->in[0])); }

static const tn_option reduce_options[] = {
    TN_OPT(tn_reduce_attributes, axes, TN_OPT_INTS, "[]", NULL,
           "dimensions to reduce, -rank .. rank-1; none: all"),
    TN_OPT(tn_reduce_attributes, keep, TN_OPT_FLAG, "no", NULL, "keep reduced dimensions as 1"), TN_OPT_END};

/* v, a reduction of x with these attributes, with the dims that broadcast against x. */
static tn_val reduce_keep(tn_build *b, tn_val v, const tn_type *x, const tn_reduce_attributes *a) {
  bool reduced[TN_MAX_RANK];
  tn_ops_axes(&a->axes, x->rank, reduced);
  return tn_ops_keep(b, v, x, reduced);
}

/* ---- reduce_sum ---- */

static tn_status reduce_sum_grad(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_build_yield(b, 0,
                 tn_broadcast(b, reduce_keep(b, tn_build_out_grad(b, 0), &x, attributes), x.rank, x.dims));
  return TN_OK;
}

const tn_op tn_op_reduce_sum = {
    .item = TN_ITEM(tn_op, TN_OP, "reduce_sum", "sum; 0 over nothing", tn_reduce_attributes, reduce_options),
    .schema = "(x:T) -> (y:any)" TN_OPS_SUMS,
    .op_class = TN_CLASS_REDUCE,
    .infer = reduce_infer,
    .grad = reduce_sum_grad,
    .cost = reduce_cost,
};

/* ---- reduce_mean ---- */

static double reduce_count(const tn_type *x, const tn_reduce_attributes *a) {
  bool reduced[TN_MAX_RANK];
  tn_ops_axes(&a->axes, x->rank, reduced);
  return (double)tn_ops_reduced_count(x, reduced);
}

/* Divides the sum by the count instead of scaling it: the rounding of a division, and NaN for no elements. */
static tn_status reduce_mean_decompose(tn_build *b, const void *attributes) {
  const tn_reduce_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val sum = tn_reduce_sum(b, tn_ops_wide(b, tn_build_in(b, 0)), a->axes.n, a->axes.v, a->keep);
  tn_val count = tn_scalar(b, tn_ops_accumulator(x.dtype), reduce_count(&x, a));
  tn_build_yield(b, 0, tn_to_dtype(b, tn_div(b, sum, count), x.dtype));
  return TN_OK;
}

static tn_status reduce_mean_grad(tn_build *b, const void *attributes) {
  const tn_reduce_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val dy = tn_div(b, tn_build_out_grad(b, 0), tn_scalar(b, x.dtype, reduce_count(&x, a)));
  tn_build_yield(b, 0, tn_broadcast(b, reduce_keep(b, dy, &x, a), x.rank, x.dims));
  return TN_OK;
}

const tn_op tn_op_reduce_mean = {
    .item =
        TN_ITEM(tn_op, TN_OP, "reduce_mean", "mean; NaN over nothing", tn_reduce_attributes, reduce_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_REDUCE,
    .infer = reduce_infer,
    .decompose = reduce_mean_decompose,
    .grad = reduce_mean_grad,
    .cost = reduce_cost,
};

/* ---- reduce_max, reduce_min ---- */

/* An extreme over no elements is an error, unless the result is empty as well. */
static tn_status extreme_infer(tn_infer *n) {
  const tn_type *x = n->node.in[0];
  tn_status status = reduce_infer(n);
  if (status != TN_OK || tn_type_count(x) > 0 || tn_type_count(&n->node.out[0]) == 0) return status;
  return tn_fail(n, TN_EINVAL, "axes", "x is %s: an extreme over no elements is not defined",
                 tn_ops_text(x).v);
}

/* dy is divided evenly among the elements that equal the extreme. */
static tn_status extreme_grad(tn_build *b, const void *attributes) {
  const tn_reduce_attributes *a = attributes;
  tn_val x = tn_build_in(b, 0);
  tn_type type = tn_ops_type(b, x);
  bool reduced[TN_MAX_RANK];
  tn_ops_axes(&a->axes, type.rank, reduced);
  tn_val y = tn_ops_keep(b, tn_build_out(b, 0), &type, reduced),
         dy = tn_ops_keep(b, tn_build_out_grad(b, 0), &type, reduced);
  tn_val is_extreme = tn_eq(b, x, y);
  tn_val ties =
      tn_ops_reduce(b, "reduce_sum", tn_to_dtype(b, is_extreme, tn_ops_accumulator(type.dtype)), reduced);
  tn_val share = tn_to_dtype(b, tn_div(b, tn_ops_wide(b, dy), ties), type.dtype);
  tn_build_yield(b, 0, tn_where(b, is_extreme, share, tn_ops_zero(b, x)));
  return TN_OK;
}

const tn_op tn_op_reduce_max = {
    .item = TN_ITEM(tn_op, TN_OP, "reduce_max", "largest element; NaN if there is one", tn_reduce_attributes,
                    reduce_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_WIDENED,
    .op_class = TN_CLASS_REDUCE,
    .infer = extreme_infer,
    .grad = extreme_grad,
    .cost = reduce_cost,
};

const tn_op tn_op_reduce_min = {
    .item = TN_ITEM(tn_op, TN_OP, "reduce_min", "smallest element; NaN if there is one", tn_reduce_attributes,
                    reduce_options),
    .schema = "(x:T) -> (y:T)" TN_OPS_WIDENED,
    .op_class = TN_CLASS_REDUCE,
    .infer = extreme_infer,
    .grad = extreme_grad,
    .cost = reduce_cost,
};

/* ---- argmax ---- */

static tn_status argmax_infer(tn_infer *n) {
  const tn_axis_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  int32_t axis;
  TN_TRY(tn_ops_check_axis(n, a->axis, x->rank, &axis));
  bool reduced[TN_MAX_RANK] = {false};
  reduced[axis] = true;
  n->node.out[0] = tn_ops_reduced(x, reduced, false);
  n->node.out[0].dtype = TN_I32;
  if (x->dims[axis] > INT32_MAX || (x->dims[axis] == 0 && tn_type_count(&n->node.out[0]) > 0))
    return tn_fail(n, TN_EINVAL, "axis",
                   "x is %s: dimension %d has %lld elements, expected 1 .. %d to choose from",
                   tn_ops_text(x).v, (int)axis, (long long)x->dims[axis], (int)INT32_MAX);
  return TN_OK;
}

static const tn_option argmax_options[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "-1", NULL, "dimension to search, -rank .. rank-1"),
    TN_OPT_END};

const tn_op tn_op_argmax = {
    .item =
        TN_ITEM(tn_op, TN_OP, "argmax", "index of the largest element, the first of equals; NaN is largest",
                tn_axis_attributes, argmax_options),
    .schema = "(x:T) -> (y:i32)" TN_OPS_WIDENED,
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_REDUCE,
    .infer = argmax_infer,
    .cost = reduce_cost,
};

/* ---- moments ---- */

static tn_status moments_infer(tn_infer *n) {
  const tn_reduce_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  bool reduced[TN_MAX_RANK];
  TN_TRY(tn_ops_check_axes(n, &a->axes, x->rank, reduced));
  n->node.out[0] = tn_ops_reduced(x, reduced, false);
  n->node.out[0].dtype = tn_ops_accumulator(x->dtype);
  n->node.out[1] = n->node.out[0];
  return TN_OK;
}

static tn_status moments_decompose(tn_build *b, const void *attributes) {
  const tn_reduce_attributes *a = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  tn_val mean = tn_reduce_mean(b, x, a->axes.n, a->axes.v, 1);
  tn_val centered = tn_sub(b, x, mean);
  bool reduced[TN_MAX_RANK];
  tn_type type = tn_ops_type(b, x);
  tn_ops_axes(&a->axes, type.rank, reduced);
  tn_type kept = tn_ops_reduced(&type, reduced, false);
  tn_build_yield(b, 0, tn_reshape(b, mean, kept.rank, kept.dims));
  tn_build_yield(b, 1, tn_reduce_mean(b, tn_mul(b, centered, centered), a->axes.n, a->axes.v, 0));
  return TN_OK;
}

/* dx = (dmean + 2 (x - mean) dvariance) / n. */
static tn_status moments_grad(tn_build *b, const void *attributes) {
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val dmean = reduce_keep(b, tn_build_out_grad(b, 0), &x, attributes),
         dvariance = reduce_keep(b, tn_build_out_grad(b, 1), &x, attributes), dx = dmean;
  if (dvariance != 0) {
    tn_val mean = reduce_keep(b, tn_build_out(b, 0), &x, attributes);
    tn_val centered = tn_sub(b, tn_ops_wide(b, tn_build_in(b, 0)), mean);
    dx = tn_ops_sum(b, tn_mul(b, tn_affine(b, centered, 2, 0), dvariance), dmean);
  }
  if (dx == 0) return TN_OK;
  dx = tn_div(b, dx, tn_scalar(b, tn_val_type(b, dx)->dtype, reduce_count(&x, attributes)));
  tn_build_yield(b, 0, tn_to_dtype(b, tn_broadcast(b, dx, x.rank, x.dims), x.dtype));
  return TN_OK;
}

static void moments_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, 3 * tn_ops_count(n->in[0]));
}

static const tn_option sums_options[] = {TN_OPT(tn_reduce_attributes, axes, TN_OPT_INTS, "[]", NULL,
                                                "dimensions to reduce, -rank .. rank-1; none: all"),
                                         TN_OPT_END};

const tn_op tn_op_moments = {
    .item =
        TN_ITEM(tn_op, TN_OP, "moments", "mean and biased variance, in f32 (f64 for f64); NaN over nothing",
                tn_reduce_attributes, sums_options),
    .schema = "(x:T) -> (mean:any, variance:any)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_REDUCE,
    .infer = moments_infer,
    .decompose = moments_decompose,
    .grad = moments_grad,
    .cost = moments_cost,
    .notes = "The relative error of the variance is at most c = 8 (sqrt(n) + 1) eps for n elements, eps of "
             "the type of the results, however far the mean is from 0, and c (1 + mean^2 / variance) by "
             "kernels that declare tn_variant.plain_sums.",
};

/* ---- norm_grad_sums ---- */

static tn_status norm_grad_sums_infer(tn_infer *n) {
  const tn_reduce_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[1];
  bool reduced[TN_MAX_RANK];
  tn_status status = tn_ops_check_dims_of(n, "dy", n->node.in[0], x);
  if (status == TN_OK) status = tn_ops_check_axes(n, &a->axes, x->rank, reduced);
  if (status != TN_OK) return status;
  tn_type sum = tn_ops_reduced(x, reduced, false);
  sum.dtype = tn_ops_accumulator(x->dtype);
  if (n->node.in[2]->dtype != sum.dtype)
    return tn_fail(n, TN_EINVAL, NULL, "mean is %s, expected %s for x of %s", tn_ops_text(n->node.in[2]).v,
                   tn_dtype_name(sum.dtype), tn_dtype_name(x->dtype));
  status = tn_ops_check_dims_of(n, "mean", n->node.in[2], &sum);
  if (status == TN_OK) status = tn_ops_check_dims_of(n, "rstd", n->node.in[3], &sum);
  n->node.out[0] = n->node.out[1] = sum;
  return status;
}

static tn_status norm_grad_sums_decompose(tn_build *b, const void *attributes) {
  const tn_reduce_attributes *a = attributes;
  tn_type type = tn_ops_type(b, tn_build_in(b, 1));
  tn_val dy = tn_ops_wide(b, tn_build_in(b, 0)), x = tn_ops_wide(b, tn_build_in(b, 1));
  tn_val mean = reduce_keep(b, tn_build_in(b, 2), &type, a),
         rstd = reduce_keep(b, tn_build_in(b, 3), &type, a);
  tn_val normal = tn_mul(b, tn_sub(b, x, mean), rstd);
  tn_build_yield(b, 0, tn_reduce_sum(b, dy, a->axes.n, a->axes.v, 0));
  tn_build_yield(b, 1, tn_reduce_sum(b, tn_mul(b, dy, normal), a->axes.n, a->axes.v, 0));
  return TN_OK;
}

static void norm_grad_sums_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, 5 * tn_ops_count(n->in[0]));
}

/* Its gradient is that of its decomposition. */
const tn_op tn_op_norm_grad_sums = {
    .item = TN_ITEM(tn_op, TN_OP, "norm_grad_sums", "sums of dy and of dy (x - mean) rstd",
                    tn_reduce_attributes, sums_options),
    .schema = "(dy:T, x:T, mean:A, rstd:A) -> (sum:A, dot:A)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_REDUCE,
    .infer = norm_grad_sums_infer,
    .decompose = norm_grad_sums_decompose,
    .cost = norm_grad_sums_cost,
    .notes = "The sum of dy, and of dy (x - mean) rstd.",
};

/* ---- all_finite ---- */

static tn_status all_finite_infer(tn_infer *n) {
  n->node.out[0].rank = 0;
  return TN_OK;
}

/* Counts the elements that are not finite: a count of 0 is exact for any number of elements. */
static tn_status all_finite_decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val bad = tn_not(b, tn_is_finite(b, tn_build_in(b, 0)));
  tn_val count = tn_reduce_sum(b, tn_to_dtype(b, bad, TN_F32), 0, NULL, 0);
  tn_build_yield(b, 0, tn_eq(b, count, tn_scalar(b, TN_F32, 0)));
  return TN_OK;
}

const tn_op tn_op_all_finite = {
    .item = TN_ITEM_PLAIN(tn_op, TN_OP, "all_finite", "whether no element is infinite or NaN"),
    .schema = "(x:T) -> (y:bool)" TN_OPS_FLOATS,
    .flags = TN_OP_NONDIFF,
    .op_class = TN_CLASS_REDUCE,
    .infer = all_finite_infer,
    .decompose = all_finite_decompose,
    .cost = reduce_cost,
};
