/* tenon/ops.h: Tenon's own ops as functions, for code that builds a graph (build.h): layers, gradients,
 * decompositions, optimizers, models in C. One function for each op; each returns the op's first result,
 * further ones come from tn_op_result(b, first, index). `tenon inspect OP` shows schema, attributes and
 * defaults.
 *
 * Schemas below read (operands; attributes) -> (results). T is one float or integer type for the whole op, A
 * is f32, or f64 where T is f64, I is i32 or i64; `?` marks an operand that may be 0 (absent). A list of
 * axes, dims or offsets is given as n and a pointer to n values, which is read during the call. Axes count
 * from 0, or from the last dimension with negative numbers. Images are (N, C, H, W); pairs such as stride and
 * padding are {height, width}. Types that do not fit stick in the builder as TN_EINVAL (build.h).
 *
 * Without a function of their own, since they take many operands: sgd_update and adamw_update, the steps of
 * the bundled optimizers: sgd_update (param:T, grad:T, buffer?:T, lr:T, weight_decay:T, updates:i64;
 * momentum, dampening, nesterov)
 *     -> (param:T, buffer:T)
 *   adamw_update (param:T, grad:T, m:T, v:T, lr:T, weight_decay:T, updates:i64; beta1, beta2, epsilon)
 *     -> (param:T, m:T, v:T) */
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include "tenon/build.h"

TN_BEGIN_C

/* An op of one, two or three operands without attributes, by name. */
static inline tn_val tn_op1(tn_build *b, const char *op, tn_val x) {
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  return tn_op_end(b);
}
static inline tn_val tn_op2(tn_build *b, const char *op, tn_val x, tn_val y) {
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  tn_op_arg(b, y);
  return tn_op_end(b);
}
static inline tn_val tn_op3(tn_build *b, const char *op, tn_val x, tn_val y, tn_val z) {
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  tn_op_arg(b, y);
  tn_op_arg(b, z);
  return tn_op_end(b);
}

/* ---- pointwise -----------------------------------------------------------------------------------
 * Element i of the result from element i of the operands, which broadcast as NumPy's do. */

/* (x:T) -> (y:T); all but neg, abs and sign take floats only. */
static inline tn_val tn_neg(tn_build *b, tn_val x) { return tn_op1(b, "neg", x); }
static inline tn_val tn_abs(tn_build *b, tn_val x) { return tn_op1(b, "abs", x); }
static inline tn_val tn_sign(tn_build *b, tn_val x) { return tn_op1(b, "sign", x); }
static inline tn_val tn_exp(tn_build *b, tn_val x) { return tn_op1(b, "exp", x); }
static inline tn_val tn_log(tn_build *b, tn_val x) { return tn_op1(b, "log", x); }
static inline tn_val tn_sqrt(tn_build *b, tn_val x) { return tn_op1(b, "sqrt", x); }
static inline tn_val tn_rsqrt(tn_build *b, tn_val x) { return tn_op1(b, "rsqrt", x); }
static inline tn_val tn_reciprocal(tn_build *b, tn_val x) { return tn_op1(b, "reciprocal", x); }
static inline tn_val tn_tanh(tn_build *b, tn_val x) { return tn_op1(b, "tanh", x); }
static inline tn_val tn_sigmoid(tn_build *b, tn_val x) { return tn_op1(b, "sigmoid", x); }
static inline tn_val tn_erf(tn_build *b, tn_val x) { return tn_op1(b, "erf", x); }
static inline tn_val tn_sin(tn_build *b, tn_val x) { return tn_op1(b, "sin", x); }
static inline tn_val tn_cos(tn_build *b, tn_val x) { return tn_op1(b, "cos", x); }
static inline tn_val tn_floor(tn_build *b, tn_val x) { return tn_op1(b, "floor", x); }
/* max(x, 0); x sigmoid(x) */
static inline tn_val tn_relu(tn_build *b, tn_val x) { return tn_op1(b, "relu", x); }
static inline tn_val tn_silu(tn_build *b, tn_val x) { return tn_op1(b, "silu", x); }

/* (x:T, y:T) -> (z:T); div and pow take floats only. */
static inline tn_val tn_add(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "add", x, y); }
static inline tn_val tn_sub(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "sub", x, y); }
static inline tn_val tn_mul(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "mul", x, y); }
static inline tn_val tn_div(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "div", x, y); }
static inline tn_val tn_maximum(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "maximum", x, y); }
static inline tn_val tn_minimum(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "minimum", x, y); }
static inline tn_val tn_pow(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "pow", x, y); }

/* Comparisons, (x:T, y:T) -> (z:bool), and logic on bools. */
static inline tn_val tn_eq(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "eq", x, y); }
static inline tn_val tn_ne(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "ne", x, y); }
static inline tn_val tn_lt(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "lt", x, y); }
static inline tn_val tn_le(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "le", x, y); }
static inline tn_val tn_gt(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "gt", x, y); }
static inline tn_val tn_ge(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "ge", x, y); }
static inline tn_val tn_and(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "and", x, y); }
static inline tn_val tn_or(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "or", x, y); }
static inline tn_val tn_not(tn_build *b, tn_val x) { return tn_op1(b, "not", x); }
/* (x:T) -> (y:bool): neither infinite nor NaN */
static inline tn_val tn_is_finite(tn_build *b, tn_val x) { return tn_op1(b, "is_finite", x); }
/* (c:bool, x:T, y:T) -> (z:T): x where c holds, else y */
static inline tn_val tn_where(tn_build *b, tn_val c, tn_val x, tn_val y) {
  return tn_op3(b, "where", c, x, y);
}

/* scale * x + shift */
static inline tn_val tn_affine(tn_build *b, tn_val x, double scale, double shift) {
  tn_op_begin(b, "affine");
  tn_op_arg(b, x);
  tn_op_set_float(b, "scale", scale);
  tn_op_set_float(b, "shift", shift);
  return tn_op_end(b);
}
/* x in another dtype, rounded to nearest; x itself if it has that dtype. */
static inline tn_val tn_cast(tn_build *b, tn_val x, int32_t dtype) {
  if (tn_val_type(b, x)->dtype == dtype) return x;
  tn_op_begin(b, "cast");
  tn_op_arg(b, x);
  tn_op_set_text(b, "to", tn_dtype_name(dtype));
  return tn_op_end(b);
}
/* x where x > 0, else slope * x */
static inline tn_val tn_leaky_relu(tn_build *b, tn_val x, double slope) {
  tn_op_begin(b, "leaky_relu");
  tn_op_arg(b, x);
  tn_op_set_float(b, "slope", slope);
  return tn_op_end(b);
}
/* x times the normal distribution function of x, by erf, or by tanh where `approximate` is 1 (Hendrycks,
 * Gimpel, "Gaussian error linear units", 2016). */
static inline tn_val tn_gelu(tn_build *b, tn_val x, int32_t approximate) {
  tn_op_begin(b, "gelu");
  tn_op_arg(b, x);
  tn_op_set_text(b, "approximate", approximate ? "tanh" : "none");
  return tn_op_end(b);
}
static inline tn_val tn_gelu_grad(tn_build *b, tn_val dy, tn_val x, int32_t approximate) {
  tn_op_begin(b, "gelu_grad");
  tn_op_arg(b, dy);
  tn_op_arg(b, x);
  tn_op_set_text(b, "approximate", approximate ? "tanh" : "none");
  return tn_op_end(b);
}

/* ---- constants and random numbers ----------------------------------------------------------------- */

/* Every element is `value`. */
static inline tn_val tn_full(tn_build *b, const tn_type *type, double value) {
  tn_op_begin(b, "full");
  tn_op_set_ints(b, "dims", type->rank, type->dims);
  tn_op_set_float(b, "value", value);
  tn_op_set_text(b, "dtype", tn_dtype_name(type->dtype));
  return tn_op_end(b);
}
static inline tn_val tn_scalar(tn_build *b, int32_t dtype, double value) {
  tn_type t = {dtype, 0, {0, 0, 0, 0, 0, 0, 0, 0}};
  return tn_full(b, &t, value);
}
/* Each element is its index along `axis`. */
static inline tn_val tn_iota(tn_build *b, const tn_type *type, int64_t axis) {
  tn_op_begin(b, "iota");
  tn_op_set_ints(b, "dims", type->rank, type->dims);
  tn_op_set_int(b, "axis", axis);
  tn_op_set_text(b, "dtype", tn_dtype_name(type->dtype));
  return tn_op_end(b);
}
/* bool (rows, columns): column <= row + diagonal */
static inline tn_val tn_triangular_mask(tn_build *b, int64_t rows, int64_t columns, int64_t diagonal) {
  tn_op_begin(b, "triangular_mask");
  tn_op_set_int(b, "rows", rows);
  tn_op_set_int(b, "columns", columns);
  tn_op_set_int(b, "diagonal", diagonal);
  return tn_op_end(b);
}
/* Rank 1, `count` elements: y[i] = values[index[r]] for the last r of n with starts[r] <= i; starts[0] is 0.
 */
static inline tn_val tn_spread(tn_build *b, tn_val values, int64_t n, const int64_t *starts,
                               const int64_t *index, int64_t count) {
  tn_op_begin(b, "spread");
  tn_op_arg(b, values);
  tn_op_set_ints(b, "starts", n, starts);
  tn_op_set_ints(b, "index", n, index);
  tn_op_set_int(b, "count", count);
  return tn_op_end(b);
}
/* Random elements; attributes.h defines their bits. `iteration` is tn_build_counter(b, TN_ITERATION), `block`
 * tn_build_counter(b, TN_BATCH_BLOCK), `stream` tn_build_random_stream(b, use). */
static inline tn_val tn_random(tn_build *b, const char *op, const tn_type *type, tn_val iteration,
                               tn_val block, uint64_t stream, double first, double second) {
  tn_op_begin(b, op);
  tn_op_arg(b, iteration);
  tn_op_arg(b, block);
  tn_op_set_ints(b, "dims", type->rank, type->dims);
  tn_op_set_int(b, "stream", (int64_t)stream);
  tn_op_set_float(b, "a", first);
  tn_op_set_float(b, "b", second);
  tn_op_set_text(b, "dtype", tn_dtype_name(type->dtype));
  return tn_op_end(b);
}
/* Uniform on [low, high). */
static inline tn_val tn_random_uniform(tn_build *b, const tn_type *type, tn_val iteration, tn_val block,
                                       uint64_t stream, double low, double high) {
  return tn_random(b, "random_uniform", type, iteration, block, stream, low, high);
}
static inline tn_val tn_random_normal(tn_build *b, const tn_type *type, tn_val iteration, tn_val block,
                                      uint64_t stream, double mean, double std) {
  return tn_random(b, "random_normal", type, iteration, block, stream, mean, std);
}
/* Zero with probability p, else x / (1 - p). The other operands are those of tn_random_uniform. */
static inline tn_val tn_dropout(tn_build *b, tn_val x, tn_val iteration, tn_val block, double p,
                                uint64_t stream) {
  tn_op_begin(b, "dropout");
  tn_op_arg(b, x);
  tn_op_arg(b, iteration);
  tn_op_arg(b, block);
  tn_op_set_float(b, "p", p);
  tn_op_set_int(b, "stream", (int64_t)stream);
  return tn_op_end(b);
}

/* ---- reductions -----------------------------------------------------------------------------------
 * Over n axes; n = 0 reduces all. `keep` keeps the reduced dimensions as 1. */

/* `op` is reduce_sum, reduce_mean, reduce_max or reduce_min. */
static inline tn_val tn_reduce(tn_build *b, const char *op, tn_val x, int64_t n, const int64_t *axes,
                               int32_t keep) {
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  tn_op_set_ints(b, "axes", n, axes);
  tn_op_set_int(b, "keep", keep);
  return tn_op_end(b);
}
static inline tn_val tn_reduce_sum(tn_build *b, tn_val x, int64_t n, const int64_t *axes, int32_t keep) {
  return tn_reduce(b, "reduce_sum", x, n, axes, keep);
}
static inline tn_val tn_reduce_mean(tn_build *b, tn_val x, int64_t n, const int64_t *axes, int32_t keep) {
  return tn_reduce(b, "reduce_mean", x, n, axes, keep);
}
static inline tn_val tn_reduce_max(tn_build *b, tn_val x, int64_t n, const int64_t *axes, int32_t keep) {
  return tn_reduce(b, "reduce_max", x, n, axes, keep);
}
static inline tn_val tn_reduce_min(tn_build *b, tn_val x, int64_t n, const int64_t *axes, int32_t keep) {
  return tn_reduce(b, "reduce_min", x, n, axes, keep);
}
/* (x:T) -> (y:i32): the index of the largest element, the first of several. */
static inline tn_val tn_argmax(tn_build *b, tn_val x, int64_t axis) {
  tn_op_begin(b, "argmax");
  tn_op_arg(b, x);
  tn_op_set_int(b, "axis", axis);
  return tn_op_end(b);
}
/* (x:T) -> (mean:A, variance:A): mean and biased variance; NaN over nothing. The relative error of the
 * variance is at most c = 8 (sqrt(n) + 1) eps(A) for n elements, however far the mean is from 0, and c (1 +
 * mean^2 / variance) by kernels that declare tn_variant.plain_sums. */
static inline tn_val tn_moments(tn_build *b, tn_val x, int64_t n, const int64_t *axes) {
  tn_op_begin(b, "moments");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "axes", n, axes);
  return tn_op_end(b);
}
/* (dy:T, x:T, mean:A, rstd:A) -> (sum:A, dot:A): sum of dy, and of dy (x - mean) rstd. */
static inline tn_val tn_norm_grad_sums(tn_build *b, tn_val dy, tn_val x, tn_val mean, tn_val rstd, int64_t n,
                                       const int64_t *axes) {
  tn_op_begin(b, "norm_grad_sums");
  tn_op_arg(b, dy);
  tn_op_arg(b, x);
  tn_op_arg(b, mean);
  tn_op_arg(b, rstd);
  tn_op_set_ints(b, "axes", n, axes);
  return tn_op_end(b);
}
/* (x:T) -> (y:bool), a scalar */
static inline tn_val tn_all_finite(tn_build *b, tn_val x) { return tn_op1(b, "all_finite", x); }
/* (x:T) -> (y:T): element by element over all ranks. `reduction` is TN_REDUCTION_...; a mean is of floats. */
static inline tn_val tn_all_reduce(tn_build *b, tn_val x, int32_t reduction) {
  tn_op_begin(b, "all_reduce");
  tn_op_arg(b, x);
  tn_op_set_text(b, "reduction", tn_reduction_name(reduction));
  return tn_op_end(b);
}
/* (x:T) -> (y:T): of the reduction over all ranks, rank r gets the r-th of `ranks` equal parts of dimension
 * 0, which must be a multiple of `ranks`, the number of ranks of the run (tn_build_ranks). */
static inline tn_val tn_reduce_scatter(tn_build *b, tn_val x, int32_t reduction, int64_t ranks) {
  tn_op_begin(b, "reduce_scatter");
  tn_op_arg(b, x);
  tn_op_set_int(b, "ranks", ranks);
  tn_op_set_text(b, "reduction", tn_reduction_name(reduction));
  return tn_op_end(b);
}
/* (x:T) -> (y:T): the operands of all ranks, joined along dimension 0 in the order of ranks. */
static inline tn_val tn_all_gather(tn_build *b, tn_val x, int64_t ranks) {
  tn_op_begin(b, "all_gather");
  tn_op_arg(b, x);
  tn_op_set_int(b, "ranks", ranks);
  return tn_op_end(b);
}

/* ---- products ------------------------------------------------------------------------------------- */

/* (x:T, y:T, bias?:T) -> (z:T): the product of the last two dimensions, transposed first where the flags say
 * so; the dimensions before them broadcast. `bias` broadcasts to the result. */
static inline tn_val tn_matmul(tn_build *b, tn_val x, tn_val y, tn_val bias, int32_t transpose_x,
                               int32_t transpose_y) {
  tn_op_begin(b, "matmul");
  tn_op_arg(b, x);
  tn_op_arg(b, y);
  tn_op_arg(b, bias);
  tn_op_set_int(b, "transpose_a", transpose_x);
  tn_op_set_int(b, "transpose_b", transpose_y);
  return tn_op_end(b);
}
/* The window of a convolution or pooling. NULL stands for the default of stride, padding and dilation: 1,
 * 0, 1. */
static inline void tn_op_set_pair(tn_build *b, const char *name, const int64_t *pair) {
  if (pair != NULL) tn_op_set_ints(b, name, 2, pair);
}
static inline void tn_op_set_window(tn_build *b, const int64_t *stride, const int64_t *padding,
                                    const int64_t *dilation, int64_t groups) {
  tn_op_set_pair(b, "stride", stride);
  tn_op_set_pair(b, "padding", padding);
  tn_op_set_pair(b, "dilation", dilation);
  tn_op_set_int(b, "groups", groups);
}
/* (x:T (N, C, H, W), w:T (O, C / groups, h, w), bias?:T (O)) -> (y:T): cross-correlation, as in PyTorch. */
static inline tn_val tn_conv2d(tn_build *b, tn_val x, tn_val w, tn_val bias, const int64_t *stride,
                               const int64_t *padding, const int64_t *dilation, int64_t groups) {
  tn_op_begin(b, "conv2d");
  tn_op_arg(b, x);
  tn_op_arg(b, w);
  tn_op_arg(b, bias);
  tn_op_set_window(b, stride, padding, dilation, groups);
  return tn_op_end(b);
}
/* (dy:T, w:T) -> (dx:T); dims: four, of dx */
static inline tn_val tn_conv2d_grad_input(tn_build *b, tn_val dy, tn_val w, const int64_t *dims,
                                          const int64_t *stride, const int64_t *padding,
                                          const int64_t *dilation, int64_t groups) {
  tn_op_begin(b, "conv2d_grad_input");
  tn_op_arg(b, dy);
  tn_op_arg(b, w);
  tn_op_set_window(b, stride, padding, dilation, groups);
  tn_op_set_ints(b, "dims", 4, dims);
  return tn_op_end(b);
}
/* (x:T, dy:T) -> (dw:T); dims: four, of dw */
static inline tn_val tn_conv2d_grad_weight(tn_build *b, tn_val x, tn_val dy, const int64_t *dims,
                                           const int64_t *stride, const int64_t *padding,
                                           const int64_t *dilation, int64_t groups) {
  tn_op_begin(b, "conv2d_grad_weight");
  tn_op_arg(b, x);
  tn_op_arg(b, dy);
  tn_op_set_window(b, stride, padding, dilation, groups);
  tn_op_set_ints(b, "dims", 4, dims);
  return tn_op_end(b);
}

/* ---- pooling --------------------------------------------------------------------------------------
 * kernel, stride, padding: {height, width}; a stride of NULL is the kernel's size, a padding of NULL 0.
 * `ceil` rounds the size of the result up, as PyTorch's ceil_mode. */

static inline void tn_op_set_pool(tn_build *b, const int64_t *kernel, const int64_t *stride,
                                  const int64_t *padding, int32_t ceil) {
  tn_op_set_pair(b, "kernel", kernel);
  tn_op_set_pair(b, "stride", stride);
  tn_op_set_pair(b, "padding", padding);
  tn_op_set_int(b, "ceil", ceil);
}
/* (x:T) -> (y:T, index:i32): `index` is the position of the largest element in its plane, row-major. */
static inline tn_val tn_max_pool2d(tn_build *b, tn_val x, const int64_t *kernel, const int64_t *stride,
                                   const int64_t *padding, int32_t ceil) {
  tn_op_begin(b, "max_pool2d");
  tn_op_arg(b, x);
  tn_op_set_pool(b, kernel, stride, padding, ceil);
  return tn_op_end(b);
}
/* (dy:T, index:i32) -> (dx:T); dims: four, of dx */
static inline tn_val tn_max_pool2d_grad(tn_build *b, tn_val dy, tn_val index, const int64_t *dims,
                                        const int64_t *kernel, const int64_t *stride, const int64_t *padding,
                                        int32_t ceil) {
  tn_op_begin(b, "max_pool2d_grad");
  tn_op_arg(b, dy);
  tn_op_arg(b, index);
  tn_op_set_pool(b, kernel, stride, padding, ceil);
  tn_op_set_ints(b, "dims", 4, dims);
  return tn_op_end(b);
}
/* include_pad: 1 divides by the kernel's size at the border, too. */
static inline tn_val tn_avg_pool2d(tn_build *b, tn_val x, const int64_t *kernel, const int64_t *stride,
                                   const int64_t *padding, int32_t ceil, int32_t include_pad) {
  tn_op_begin(b, "avg_pool2d");
  tn_op_arg(b, x);
  tn_op_set_pool(b, kernel, stride, padding, ceil);
  tn_op_set_int(b, "include_pad", include_pad);
  return tn_op_end(b);
}
/* (dy:T) -> (dx:T); dims: four, of dx */
static inline tn_val tn_avg_pool2d_grad(tn_build *b, tn_val dy, const int64_t *dims, const int64_t *kernel,
                                        const int64_t *stride, const int64_t *padding, int32_t ceil,
                                        int32_t include_pad) {
  tn_op_begin(b, "avg_pool2d_grad");
  tn_op_arg(b, dy);
  tn_op_set_pool(b, kernel, stride, padding, ceil);
  tn_op_set_int(b, "include_pad", include_pad);
  tn_op_set_ints(b, "dims", 4, dims);
  return tn_op_end(b);
}
/* (N, C, H, W) -> (N, C): the mean of each plane */
static inline tn_val tn_global_avg_pool(tn_build *b, tn_val x) { return tn_op1(b, "global_avg_pool", x); }

/* ---- normalization -------------------------------------------------------------------------------- */

/* (x:T (N, C, ...), weight?:A (C), bias?:A (C)) -> (y:T, mean:A, variance:A): statistics of the batch, the
 * variance biased (Ioffe, Szegedy, "Batch normalization", 2015). `ranks` is tn_build_ranks(b) where they span
 * all ranks, else 1. */
static inline tn_val tn_batch_norm(tn_build *b, tn_val x, tn_val weight, tn_val bias, double epsilon,
                                   int64_t ranks) {
  tn_op_begin(b, "batch_norm");
  tn_op_arg(b, x);
  tn_op_arg(b, weight);
  tn_op_arg(b, bias);
  tn_op_set_float(b, "epsilon", epsilon);
  tn_op_set_int(b, "ranks", ranks);
  return tn_op_end(b);
}
/* (x:T, mean:A, variance:A, weight?:A, bias?:A) -> (y:T): with statistics that are given. */
static inline tn_val tn_batch_norm_apply(tn_build *b, tn_val x, tn_val mean, tn_val variance, tn_val weight,
                                         tn_val bias, double epsilon) {
  tn_op_begin(b, "batch_norm_apply");
  tn_op_arg(b, x);
  tn_op_arg(b, mean);
  tn_op_arg(b, variance);
  tn_op_arg(b, weight);
  tn_op_arg(b, bias);
  tn_op_set_float(b, "epsilon", epsilon);
  return tn_op_end(b);
}
/* (x:T, weight?:A, bias?:A) -> (y:T, mean:A, rstd:A) over the last `trailing` dimensions (Ba, Kiros, Hinton,
 * "Layer normalization", 2016). */
static inline tn_val tn_layer_norm(tn_build *b, tn_val x, tn_val weight, tn_val bias, double epsilon,
                                   int64_t trailing) {
  tn_op_begin(b, "layer_norm");
  tn_op_arg(b, x);
  tn_op_arg(b, weight);
  tn_op_arg(b, bias);
  tn_op_set_float(b, "epsilon", epsilon);
  tn_op_set_int(b, "trailing", trailing);
  return tn_op_end(b);
}
/* (dy:T, x:T, mean:A, rstd:A, weight?:A) -> (dx:T, dweight:A, dbias:A) */
static inline tn_val tn_layer_norm_grad(tn_build *b, tn_val dy, tn_val x, tn_val mean, tn_val rstd,
                                        tn_val weight, int64_t trailing) {
  tn_op_begin(b, "layer_norm_grad");
  tn_op_arg(b, dy);
  tn_op_arg(b, x);
  tn_op_arg(b, mean);
  tn_op_arg(b, rstd);
  tn_op_arg(b, weight);
  tn_op_set_int(b, "trailing", trailing);
  return tn_op_end(b);
}

/* ---- softmax, loss, attention --------------------------------------------------------------------- */

static inline tn_val tn_softmax(tn_build *b, tn_val x, int64_t axis) {
  tn_op_begin(b, "softmax");
  tn_op_arg(b, x);
  tn_op_set_int(b, "axis", axis);
  return tn_op_end(b);
}
static inline tn_val tn_log_softmax(tn_build *b, tn_val x, int64_t axis) {
  tn_op_begin(b, "log_softmax");
  tn_op_arg(b, x);
  tn_op_set_int(b, "axis", axis);
  return tn_op_end(b);
}
/* (logits:T, target:I) -> (loss:A, lse:A): -log softmax(logits)[target] of each row, and
 * log(sum(exp(logits))). The classes lie along `axis`; a row whose target is `ignore` has loss 0; `smoothing`
 * is PyTorch's label_smoothing. */
static inline tn_val tn_cross_entropy(tn_build *b, tn_val logits, tn_val target, int64_t axis, int64_t ignore,
                                      double smoothing) {
  tn_op_begin(b, "cross_entropy");
  tn_op_arg(b, logits);
  tn_op_arg(b, target);
  tn_op_set_int(b, "axis", axis);
  tn_op_set_int(b, "ignore", ignore);
  tn_op_set_float(b, "smoothing", smoothing);
  return tn_op_end(b);
}
/* (q:T, k:T, v:T) -> (y:T, lse:A): softmax(scale q k^T) v of operands (batch, heads, tokens, width), or
 * (batch, tokens, heads * width) where `heads` is not 0. `causal`: query i sees keys up to i + (keys -
 * queries). A scale of 0 stands for 1 / sqrt(width). `lse` is the log of each row's sum of exponentials (Dao
 * and others, "FlashAttention", 2022). */
static inline tn_val tn_attention(tn_build *b, tn_val q, tn_val k, tn_val v, int32_t causal, double scale,
                                  int64_t heads) {
  tn_op_begin(b, "attention");
  tn_op_arg(b, q);
  tn_op_arg(b, k);
  tn_op_arg(b, v);
  tn_op_set_int(b, "causal", causal);
  tn_op_set_float(b, "scale", scale);
  tn_op_set_int(b, "heads", heads);
  return tn_op_end(b);
}
/* (q:T, k:T, v:T, y:T, lse:A, dy:T) -> (dq:T, dk:T, dv:T) */
static inline tn_val tn_attention_grad(tn_build *b, tn_val q, tn_val k, tn_val v, tn_val y, tn_val lse,
                                       tn_val dy, int32_t causal, double scale, int64_t heads) {
  tn_op_begin(b, "attention_grad");
  tn_op_arg(b, q);
  tn_op_arg(b, k);
  tn_op_arg(b, v);
  tn_op_arg(b, y);
  tn_op_arg(b, lse);
  tn_op_arg(b, dy);
  tn_op_set_int(b, "causal", causal);
  tn_op_set_float(b, "scale", scale);
  tn_op_set_int(b, "heads", heads);
  return tn_op_end(b);
}
/* (q:T, k:T, v:T, keys:T, values:T, position:i64) -> (y:T, all_keys:T, all_values:T): causal attention of n
 * tokens to themselves and to the `position` tokens before them. k and v of the tokens replace the rows
 * position .. position + n - 1 of the caches keys and values; query i sees the rows up to position + i.
 * Operands as in tn_attention; the caches have as many rows as tokens fit, and position + n is at most that.
 * A kernel may write the caches in place. */
static inline tn_val tn_cached_attention(tn_build *b, const tn_val operands[5], tn_val position, double scale,
                                         int64_t heads) {
  tn_op_begin(b, "cached_attention");
  for (int32_t i = 0; i < 5; i++) tn_op_arg(b, operands[i]);
  tn_op_arg(b, position);
  tn_op_set_float(b, "scale", scale);
  tn_op_set_int(b, "heads", heads);
  return tn_op_end(b);
}

/* ---- index and movement --------------------------------------------------------------------------- */

/* (ids:I, table:T (rows, width)) -> (y:T): dims of ids, then width */
static inline tn_val tn_embedding(tn_build *b, tn_val ids, tn_val table) {
  return tn_op2(b, "embedding", ids, table);
}
/* (ids:I, dy:T) -> (dtable:T (rows, width)) */
static inline tn_val tn_embedding_grad(tn_build *b, tn_val ids, tn_val dy, int64_t rows) {
  tn_op_begin(b, "embedding_grad");
  tn_op_arg(b, ids);
  tn_op_arg(b, dy);
  tn_op_set_int(b, "rows", rows);
  return tn_op_end(b);
}
/* One of the n dims may be -1: it follows from the others. */
static inline tn_val tn_reshape(tn_build *b, tn_val x, int64_t n, const int64_t *dims) {
  tn_op_begin(b, "reshape");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "dims", n, dims);
  return tn_op_end(b);
}
/* Dimension i of the result is dimension order[i] of x. */
static inline tn_val tn_transpose(tn_build *b, tn_val x, int64_t n, const int64_t *order) {
  tn_op_begin(b, "transpose");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "order", n, order);
  return tn_op_end(b);
}
/* x repeated along dimensions of size 1 and new leading ones */
static inline tn_val tn_broadcast(tn_build *b, tn_val x, int64_t n, const int64_t *dims) {
  tn_op_begin(b, "broadcast");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "dims", n, dims);
  return tn_op_end(b);
}
/* Indices starts[i], starts[i] + steps[i] ... below stops[i] of dimension i; n is x's rank. steps NULL:
 * all 1. */
static inline tn_val tn_slice(tn_build *b, tn_val x, int64_t n, const int64_t *starts, const int64_t *stops,
                              const int64_t *steps) {
  tn_op_begin(b, "slice");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "starts", n, starts);
  tn_op_set_ints(b, "stops", n, stops);
  if (steps != NULL) tn_op_set_ints(b, "steps", n, steps);
  return tn_op_end(b);
}
/* One part of x along an axis from 0 on: indices start .. stop - 1. */
static inline tn_val tn_slice_axis(tn_build *b, tn_val x, int32_t axis, int64_t start, int64_t stop) {
  const tn_type *t = tn_val_type(b, x);
  int64_t starts[TN_MAX_RANK], stops[TN_MAX_RANK];
  for (int32_t i = 0; i < t->rank; i++) {
    starts[i] = i == axis ? start : 0;
    stops[i] = i == axis ? stop : t->dims[i];
  }
  return tn_slice(b, x, t->rank, starts, stops, NULL);
}
/* (x:T (N, ..., H, W), start?:I (N, 2), mirror?:I (N, 2)) -> (y:T (N, ..., height, width)): of sample n the
 * part that begins at row start[n, 0] and column start[n, 1], zero outside of x. Where mirror[n, 0] is not 0
 * its rows are in reverse order, where mirror[n, 1] is not 0 its columns. An absent operand is 0. */
static inline tn_val tn_crop(tn_build *b, tn_val x, tn_val start, tn_val mirror, int64_t height,
                             int64_t width) {
  const int64_t size[2] = {height, width};
  tn_op_begin(b, "crop");
  tn_op_arg(b, x);
  tn_op_arg(b, start);
  tn_op_arg(b, mirror);
  tn_op_set_ints(b, "size", 2, size);
  return tn_op_end(b);
}
/* Zeros before (low), after (high) and between neighbours (inner; NULL: none) in each of n = rank dimensions.
 */
static inline tn_val tn_pad(tn_build *b, tn_val x, int64_t n, const int64_t *low, const int64_t *high,
                            const int64_t *inner) {
  tn_op_begin(b, "pad");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "low", n, low);
  tn_op_set_ints(b, "high", n, high);
  if (inner != NULL) tn_op_set_ints(b, "inner", n, inner);
  return tn_op_end(b);
}
/* n values joined along an axis */
static inline tn_val tn_concat(tn_build *b, int64_t n, const tn_val *xs, int64_t axis) {
  tn_op_begin(b, "concat");
  for (int64_t i = 0; i < n; i++) tn_op_arg(b, xs[i]);
  tn_op_set_int(b, "axis", axis);
  return tn_op_end(b);
}
/* n values flattened into one of rank 1 and `count` elements, value i from element offsets[i] on; gaps are
 * zero. */
static inline tn_val tn_pack(tn_build *b, int64_t n, const tn_val *xs, const int64_t *offsets,
                             int64_t count) {
  tn_op_begin(b, "pack");
  for (int64_t i = 0; i < n; i++) tn_op_arg(b, xs[i]);
  tn_op_set_ints(b, "offsets", n, offsets);
  tn_op_set_int(b, "count", count);
  return tn_op_end(b);
}
/* The same elements in memory of their own; in another layout, which the host chooses. */
static inline tn_val tn_copy(tn_build *b, tn_val x) { return tn_op1(b, "copy", x); }
static inline tn_val tn_reorder(tn_build *b, tn_val x) { return tn_op1(b, "reorder", x); }

/* ---- composed ------------------------------------------------------------------------------------- */

/* Sums x down to the dims of `like`: the gradient of broadcasting. */
static inline tn_val tn_sum_to(tn_build *b, tn_val x, const tn_type *like) {
  const tn_type *t = tn_val_type(b, x);
  int64_t axes[TN_MAX_RANK], n = 0;
  int32_t lead = t->rank - like->rank;
  if (x == 0 || tn_type_same_dims(t, like)) return x;
  for (int32_t i = 0; i < t->rank; i++)
    if (i < lead || (like->dims[i - lead] == 1 && t->dims[i] != 1)) axes[n++] = i;
  if (n > 0) x = tn_reduce(b, "reduce_sum", x, n, axes, 1);
  return lead > 0 ? tn_reshape(b, x, like->rank, like->dims) : x;
}

TN_END_C
#endif
