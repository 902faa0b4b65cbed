/* The ops of core as functions, for code that builds a graph (build.h). Written by
 * `tenon reference --header core` from the descriptors of the ops.
 *
 * A function returns the op's first result; further ones come from tn_op_result(build, first, index). Its
 * arguments are the operands in the order of the schema, then the options in the order of their table. An
 * operand with `?` is 0 where it is absent. A choice is given by the number of its word. A list is given as
 * its length and a pointer, which is read during the call; 0 and NULL stand for the default, and so does a
 * text that is NULL, if there is a default. The options dims and dtype are given as one tn_type. Types that
 * do not fit stick in the builder as TN_EINVAL. */
#ifndef TENON_OPS_OF_CORE_H
#define TENON_OPS_OF_CORE_H

#include "tenon/build.h"

/* clang-format off */

TN_BEGIN_C

/* abs: absolute value
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_abs(tn_build *build, tn_val x) {
  tn_op_begin(build, "abs");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* acos: arc cosine, from 0 to pi
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_acos(tn_build *build, tn_val x) {
  tn_op_begin(build, "acos");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* acosh: inverse of cosh
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_acosh(tn_build *build, tn_val x) {
  tn_op_begin(build, "acosh");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* adaptive_avg_pool: means of windows that divide an image into a given number of parts
 * (N, C, spatial...). Window o begins at element o in / out, rounded down, and ends before (o + 1) in /
 * out, rounded up, for sizes in and out of x and the result.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   size: of the result: one number, or one for each spatial dimension; 0 keeps that of x; >= 0 */
static inline tn_val tn_adaptive_avg_pool(tn_build *build, tn_val x, int64_t n_size, const int64_t *size) {
  tn_op_begin(build, "adaptive_avg_pool");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "size", n_size, size);
  return tn_op_end(build);
}

/* adaptive_max_pool: maxima of windows that divide an image into a given number of parts, and where they
 * lie in their channel
 * (N, C, spatial...). Window o begins at element o in / out, rounded down, and ends before (o + 1) in /
 * out, rounded up, for sizes in and out of x and the result.
 *   (x:T) -> (y:T, index:i32); T in f16 bf16 f32 f64, u8 i8 as f32
 *   size: of the result: one number, or one for each spatial dimension; 0 keeps that of x; >= 0 */
static inline tn_val tn_adaptive_max_pool(tn_build *build, tn_val x, int64_t n_size, const int64_t *size) {
  tn_op_begin(build, "adaptive_max_pool");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "size", n_size, size);
  return tn_op_end(build);
}

/* add: x + y; integers wrap
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_add(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "add");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* addcdiv: x + value y / z
 *   (x:T, y:T, z:T) -> (w:T); T in f16 bf16 f32 f64
 *   value: factor; default 1 */
static inline tn_val tn_addcdiv(tn_build *build, tn_val x, tn_val y, tn_val z, double value) {
  tn_op_begin(build, "addcdiv");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  tn_op_arg(build, z);
  tn_op_set_float(build, "value", value);
  return tn_op_end(build);
}

/* addcmul: x + value y z
 *   (x:T, y:T, z:T) -> (w:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   value: factor; default 1 */
static inline tn_val tn_addcmul(tn_build *build, tn_val x, tn_val y, tn_val z, double value) {
  tn_op_begin(build, "addcmul");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  tn_op_arg(build, z);
  tn_op_set_float(build, "value", value);
  return tn_op_end(build);
}

/* affine: scale * x + shift
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   scale: factor; default 1
 *   shift: added after scaling; default 0 */
static inline tn_val tn_affine(tn_build *build, tn_val x, double scale, double shift) {
  tn_op_begin(build, "affine");
  tn_op_arg(build, x);
  tn_op_set_float(build, "scale", scale);
  tn_op_set_float(build, "shift", shift);
  return tn_op_end(build);
}

/* affine_grid: the grid of grid_sample that an affine map (N, 2, 3) makes of an image of this size
 *   (theta:T) -> (grid:T); T in f16 bf16 f32 f64
 *   size: height and width of the grid
 *   align_corners: -1 and 1 are the centers of the outermost elements, instead of their outer edges;
 *     default no */
static inline tn_val tn_affine_grid(tn_build *build, tn_val theta, int64_t n_size, const int64_t *size,
                                    int32_t align_corners) {
  tn_op_begin(build, "affine_grid");
  tn_op_arg(build, theta);
  tn_op_set_ints(build, "size", n_size, size);
  tn_op_set_int(build, "align_corners", align_corners);
  return tn_op_end(build);
}

/* alignment: logarithm of the sum over all alignments of states with steps
 * score (batch, steps, states) has the logarithm of a factor for each state at each step. A path begins in
 * state 0 or 1, stays in its state, goes to the next one or, where `skip` of the state behind that is
 * true, past it, and ends in one of the last two. total is the logarithm of the sum over all paths of the
 * products of their factors; -inf where there is none. `steps` and `states` are those of each sequence. A.
 * Graves, S. Fernandez, F. Gomez, J. Schmidhuber, "Connectionist temporal classification", 2006.
 *   (score:T, skip:bool, steps:i32, states:i32) -> (total:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_alignment(tn_build *build, tn_val score, tn_val skip, tn_val steps, tn_val states) {
  tn_op_begin(build, "alignment");
  tn_op_arg(build, score);
  tn_op_arg(build, skip);
  tn_op_arg(build, steps);
  tn_op_arg(build, states);
  return tn_op_end(build);
}

/* alignment_grad: gradient of alignment
 * dscore is dtotal times the share of the paths that are in this state at this step. Each path counts with
 * the product of its factors. The gradient is 0 where the sequence has no path.
 *   (score:T, skip:bool, steps:i32, states:i32, dtotal:T) -> (dscore:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_alignment_grad(tn_build *build, tn_val score, tn_val skip, tn_val steps,
                                       tn_val states, tn_val dtotal) {
  tn_op_begin(build, "alignment_grad");
  tn_op_arg(build, score);
  tn_op_arg(build, skip);
  tn_op_arg(build, steps);
  tn_op_arg(build, states);
  tn_op_arg(build, dtotal);
  return tn_op_end(build);
}

/* all: whether no element is 0
 *   (x:T) -> (y:bool); T in bool u8 i8 i32 i64 f16 bf16 f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_all(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes, int32_t keep) {
  tn_op_begin(build, "all");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* all_finite: whether no element is infinite or NaN
 *   (x:T) -> (y:bool); T in f16 bf16 f32 f64 */
static inline tn_val tn_all_finite(tn_build *build, tn_val x) {
  tn_op_begin(build, "all_finite");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* all_gather: the operands of all ranks, joined along dimension 0
 * The operands are in the order of ranks. `ranks` is tn_build_ranks(b).
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   ranks: number of ranks of the run; >= 1; default 1 */
static inline tn_val tn_all_gather(tn_build *build, tn_val x, int64_t ranks) {
  tn_op_begin(build, "all_gather");
  tn_op_arg(build, x);
  tn_op_set_int(build, "ranks", ranks);
  return tn_op_end(build);
}

/* all_reduce: sum, mean or extreme over ranks, element by element
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   reduction (0 sum, 1 min, 2 max, 3 mean): how the ranks' elements are combined; mean: of floats;
 *     default sum */
static inline tn_val tn_all_reduce(tn_build *build, tn_val x, int32_t reduction) {
  tn_op_begin(build, "all_reduce");
  tn_op_arg(build, x);
  tn_op_set_int(build, "reduction", reduction);
  return tn_op_end(build);
}

/* and: both
 *   (x:bool, y:bool) -> (z:bool) */
static inline tn_val tn_and(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "and");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* any: whether an element is not 0
 *   (x:T) -> (y:bool); T in bool u8 i8 i32 i64 f16 bf16 f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_any(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes, int32_t keep) {
  tn_op_begin(build, "any");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* argmax: index of the largest element, the first of equals; NaN is largest
 *   (x:T) -> (y:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to search, -rank .. rank-1; default -1 */
static inline tn_val tn_argmax(tn_build *build, tn_val x, int64_t axis) {
  tn_op_begin(build, "argmax");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* argmin: index of the smallest element, the first of equals; NaN is smallest
 *   (x:T) -> (y:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to search, -rank .. rank-1; default -1 */
static inline tn_val tn_argmin(tn_build *build, tn_val x, int64_t axis) {
  tn_op_begin(build, "argmin");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* argsort: indices that sort the elements along an axis, the first of equals first
 *   (x:T) -> (index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to sort along, -rank .. rank-1; default -1
 *   descending: the largest element first; default no */
static inline tn_val tn_argsort(tn_build *build, tn_val x, int64_t axis, int32_t descending) {
  tn_op_begin(build, "argsort");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "descending", descending);
  return tn_op_end(build);
}

/* asin: arc sine, from -pi/2 to pi/2
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_asin(tn_build *build, tn_val x) {
  tn_op_begin(build, "asin");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* asinh: inverse of sinh
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_asinh(tn_build *build, tn_val x) {
  tn_op_begin(build, "asinh");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* atan: arc tangent, from -pi/2 to pi/2
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_atan(tn_build *build, tn_val x) {
  tn_op_begin(build, "atan");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* atan2: the angle of the point (y, x), from -pi to pi
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_atan2(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "atan2");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* atanh: inverse of tanh
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_atanh(tn_build *build, tn_val x) {
  tn_op_begin(build, "atanh");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* attention: softmax(scale q k^T) v over (batch, heads, tokens, width), and log(sum(exp)) of each query
 * Operands are (batch, heads, tokens, width), or (batch, tokens, heads * width) where `heads` is not 0.
 * The second result is the log of each row's sum of exponentials. T. Dao and others, "FlashAttention",
 * NeurIPS 2022.
 *   (q:T, k:T, v:T) -> (y:T, lse:any); T in f16 bf16 f32 f64
 *   causal: query i sees keys up to i + (keys - queries); default no
 *   scale: of the products; 0: 1 / sqrt(head width); default 0
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   heads: of operands (batch, tokens, heads * width); >= 0; default 0 */
static inline tn_val tn_attention(tn_build *build, tn_val q, tn_val k, tn_val v, int32_t causal,
                                  double scale, int32_t math, int64_t heads) {
  tn_op_begin(build, "attention");
  tn_op_arg(build, q);
  tn_op_arg(build, k);
  tn_op_arg(build, v);
  tn_op_set_int(build, "causal", causal);
  tn_op_set_float(build, "scale", scale);
  tn_op_set_int(build, "math", math);
  tn_op_set_int(build, "heads", heads);
  return tn_op_end(build);
}

/* attention_grad: gradient of attention's first result
 *   (q:T, k:T, v:T, y:T, lse:A, dy:T) -> (dq:T, dk:T, dv:T); T in f16 bf16 f32 f64; A in f32 f64
 *   causal: query i sees keys up to i + (keys - queries); default no
 *   scale: of the products; 0: 1 / sqrt(head width); default 0
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   heads: of operands (batch, tokens, heads * width); >= 0; default 0 */
static inline tn_val tn_attention_grad(tn_build *build, tn_val q, tn_val k, tn_val v, tn_val y, tn_val lse,
                                       tn_val dy, int32_t causal, double scale, int32_t math, int64_t heads) {
  tn_op_begin(build, "attention_grad");
  tn_op_arg(build, q);
  tn_op_arg(build, k);
  tn_op_arg(build, v);
  tn_op_arg(build, y);
  tn_op_arg(build, lse);
  tn_op_arg(build, dy);
  tn_op_set_int(build, "causal", causal);
  tn_op_set_float(build, "scale", scale);
  tn_op_set_int(build, "math", math);
  tn_op_set_int(build, "heads", heads);
  return tn_op_end(build);
}

/* avg_pool1d: mean of each window of (N, C, W)
 * `ceil` is PyTorch's ceil_mode.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: width; default [0]
 *   ceil: a last window may reach over the border; default no
 *   include_pad: padding counts in the divisor; default yes */
static inline tn_val tn_avg_pool1d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                   int64_t n_stride, const int64_t *stride,
                                   int64_t n_padding, const int64_t *padding, int32_t ceil,
                                   int32_t include_pad) {
  tn_op_begin(build, "avg_pool1d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_int(build, "include_pad", include_pad);
  return tn_op_end(build);
}

/* avg_pool2d: mean of each window
 * `ceil` is PyTorch's ceil_mode.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: height, width; default [0, 0]
 *   ceil: a last window may reach over the border; default no
 *   include_pad: padding counts in the divisor; default yes */
static inline tn_val tn_avg_pool2d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                   int64_t n_stride, const int64_t *stride,
                                   int64_t n_padding, const int64_t *padding, int32_t ceil,
                                   int32_t include_pad) {
  tn_op_begin(build, "avg_pool2d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_int(build, "include_pad", include_pad);
  return tn_op_end(build);
}

/* avg_pool2d_grad: gradient of avg_pool2d
 * `dims` are those of x.
 *   (dy:T) -> (dx:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: height, width; default [0, 0]
 *   ceil: a last window may reach over the border; default no
 *   include_pad: padding counts in the divisor; default yes
 *   dims: dimensions of the result */
static inline tn_val tn_avg_pool2d_grad(tn_build *build, tn_val dy, int64_t n_kernel, const int64_t *kernel,
                                        int64_t n_stride, const int64_t *stride,
                                        int64_t n_padding, const int64_t *padding, int32_t ceil,
                                        int32_t include_pad, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "avg_pool2d_grad");
  tn_op_arg(build, dy);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_int(build, "include_pad", include_pad);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* avg_pool3d: mean of each window of (N, C, D, H, W)
 * `ceil` is PyTorch's ceil_mode.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: depth, height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: depth, height, width; default [0, 0, 0]
 *   ceil: a last window may reach over the border; default no
 *   include_pad: padding counts in the divisor; default yes */
static inline tn_val tn_avg_pool3d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                   int64_t n_stride, const int64_t *stride,
                                   int64_t n_padding, const int64_t *padding, int32_t ceil,
                                   int32_t include_pad) {
  tn_op_begin(build, "avg_pool3d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_int(build, "include_pad", include_pad);
  return tn_op_end(build);
}

/* batch_norm: (x - mean) / sqrt(variance + epsilon) * weight + bias, by the statistics of each channel
 * over the batch; biased variance
 * x is (N, C, ...), weight and bias are (C). `ranks` is tn_build_ranks(b) where the statistics span all
 * ranks. S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015.
 *   (x:T, weight?:A, bias?:A) -> (y:T, mean:A, variance:A); T in f16 bf16 f32 f64; A in f32 f64
 *   epsilon: added to the variance; >= 0; default 1e-5
 *   ranks: over how many ranks the batch spans; >= 1; default 1 */
static inline tn_val tn_batch_norm(tn_build *build, tn_val x, tn_val weight, tn_val bias, double epsilon,
                                   int64_t ranks) {
  tn_op_begin(build, "batch_norm");
  tn_op_arg(build, x);
  tn_op_arg(build, weight);
  tn_op_arg(build, bias);
  tn_op_set_float(build, "epsilon", epsilon);
  tn_op_set_int(build, "ranks", ranks);
  return tn_op_end(build);
}

/* batch_norm_apply: batch_norm by given statistics
 *   (x:T, mean:A, variance:A, weight?:A, bias?:A) -> (y:T); T in f16 bf16 f32 f64; A in f32 f64
 *   epsilon: added to the variance; >= 0; default 1e-5 */
static inline tn_val tn_batch_norm_apply(tn_build *build, tn_val x, tn_val mean, tn_val variance,
                                         tn_val weight, tn_val bias, double epsilon) {
  tn_op_begin(build, "batch_norm_apply");
  tn_op_arg(build, x);
  tn_op_arg(build, mean);
  tn_op_arg(build, variance);
  tn_op_arg(build, weight);
  tn_op_arg(build, bias);
  tn_op_set_float(build, "epsilon", epsilon);
  return tn_op_end(build);
}

/* bitwise_and: the bits that both have
 *   (x:T, y:T) -> (z:T); T in bool u8 i8 i32 i64 */
static inline tn_val tn_bitwise_and(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "bitwise_and");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* bitwise_not: the other bits
 *   (x:T) -> (y:T); T in bool u8 i8 i32 i64 */
static inline tn_val tn_bitwise_not(tn_build *build, tn_val x) {
  tn_op_begin(build, "bitwise_not");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* bitwise_or: the bits that either has
 *   (x:T, y:T) -> (z:T); T in bool u8 i8 i32 i64 */
static inline tn_val tn_bitwise_or(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "bitwise_or");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* bitwise_xor: the bits that one of them has
 *   (x:T, y:T) -> (z:T); T in bool u8 i8 i32 i64 */
static inline tn_val tn_bitwise_xor(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "bitwise_xor");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* broadcast: x repeated along dimensions of size 1 and new leading ones
 *   (x:T) -> (y:T)
 *   dims: dimensions of the result */
static inline tn_val tn_broadcast(tn_build *build, tn_val x, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "broadcast");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* cached_attention: causal attention of new tokens, whose keys and values are written into a cache from
 * `position` on, to themselves and to the tokens before them
 * k and v of n tokens replace the rows position .. position + n - 1 of the caches keys and values; query i
 * sees the rows up to position + i. The caches have as many rows as tokens fit, and position + n is at
 * most that. Operands are (batch, heads, tokens, width), or (batch, tokens, heads * width) where `heads`
 * is not 0. A kernel may write the caches in place.
 *   (q:T, k:T, v:T, keys:T, values:T, position:i64) -> (y:T, all_keys:T, all_values:T); T in f16 bf16 f32
 *   f64
 *   scale: of the products; 0: 1 / sqrt(head width); default 0
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   heads: of operands (batch, tokens, heads * width); >= 0; default 0 */
static inline tn_val tn_cached_attention(tn_build *build, tn_val q, tn_val k, tn_val v, tn_val keys,
                                         tn_val values, tn_val position, double scale, int32_t math,
                                         int64_t heads) {
  tn_op_begin(build, "cached_attention");
  tn_op_arg(build, q);
  tn_op_arg(build, k);
  tn_op_arg(build, v);
  tn_op_arg(build, keys);
  tn_op_arg(build, values);
  tn_op_arg(build, position);
  tn_op_set_float(build, "scale", scale);
  tn_op_set_int(build, "math", math);
  tn_op_set_int(build, "heads", heads);
  return tn_op_end(build);
}

/* cast: x in another element type; floats round to nearest even, to integers toward zero
 *   (x:T) -> (y:any)
 *   to: element type of the result */
static inline tn_val tn_cast(tn_build *build, tn_val x, int32_t to) {
  tn_op_begin(build, "cast");
  tn_op_arg(build, x);
  tn_op_set_int(build, "to", to);
  return tn_op_end(build);
}

/* cdist: p-norm of the difference of every row of x and every row of y
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64
 *   p: the root of the sum of |x|^p; inf: the largest |x|; 0: how many are not 0; default 2 */
static inline tn_val tn_cdist(tn_build *build, tn_val x, tn_val y, double p) {
  tn_op_begin(build, "cdist");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  tn_op_set_float(build, "p", p);
  return tn_op_end(build);
}

/* ceil: smallest integer not below x
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_ceil(tn_build *build, tn_val x) {
  tn_op_begin(build, "ceil");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* celu: x, or alpha (exp(x / alpha) - 1) where x is not positive
 * J. T. Barron, "Continuously differentiable exponential linear units", 2017.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   alpha: size of the lower limit; default 1 */
static inline tn_val tn_celu(tn_build *build, tn_val x, double alpha) {
  tn_op_begin(build, "celu");
  tn_op_arg(build, x);
  tn_op_set_float(build, "alpha", alpha);
  return tn_op_end(build);
}

/* channel_shuffle: images with the channels of groups interleaved
 *   (x:T) -> (y:T)
 *   groups: of channels, which are interleaved; >= 1 */
static inline tn_val tn_channel_shuffle(tn_build *build, tn_val x, int64_t groups) {
  tn_op_begin(build, "channel_shuffle");
  tn_op_arg(build, x);
  tn_op_set_int(build, "groups", groups);
  return tn_op_end(build);
}

/* clamp: x between low and high; high where low is above it
 *   (x:T, low:T, high:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_clamp(tn_build *build, tn_val x, tn_val low, tn_val high) {
  tn_op_begin(build, "clamp");
  tn_op_arg(build, x);
  tn_op_arg(build, low);
  tn_op_arg(build, high);
  return tn_op_end(build);
}

/* clip: x between min and max; max where min is above it
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   min: lower limit; default -inf
 *   max: upper limit; default inf */
static inline tn_val tn_clip(tn_build *build, tn_val x, double min, double max) {
  tn_op_begin(build, "clip");
  tn_op_arg(build, x);
  tn_op_set_float(build, "min", min);
  tn_op_set_float(build, "max", max);
  return tn_op_end(build);
}

/* concat: operands joined along one dimension
 *   (xs*:T) -> (y:T)
 *   axis: dimension along which to join, -rank .. rank-1; default 0 */
static inline tn_val tn_concat(tn_build *build, int64_t n_xs, const tn_val *xs, int64_t axis) {
  tn_op_begin(build, "concat");
  for (int64_t i = 0; i < n_xs; i++) tn_op_arg(build, xs[i]);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* conv1d: one-dimensional convolution of (N, C, W) with (O, C / groups, w)
 * Cross-correlation, as in PyTorch.
 *   (x:T, w:T, bias?:T) -> (y:T); T in f16 bf16 f32 f64, u8 i8 as f64
 *   stride: step of the window: width; default [1]
 *   padding: zeros on both sides: width; twice as many entries: those in front, then those behind; default
 *     [0]
 *   dilation: distance of neighbouring taps: width; default [1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full */
static inline tn_val tn_conv1d(tn_build *build, tn_val x, tn_val w, tn_val bias,
                               int64_t n_stride, const int64_t *stride,
                               int64_t n_padding, const int64_t *padding,
                               int64_t n_dilation, const int64_t *dilation, int64_t groups, int32_t math) {
  tn_op_begin(build, "conv1d");
  tn_op_arg(build, x);
  tn_op_arg(build, w);
  tn_op_arg(build, bias);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  return tn_op_end(build);
}

/* conv2d: two-dimensional convolution of (N, C, H, W) with (O, C / groups, h, w)
 * Cross-correlation, as in PyTorch.
 *   (x:T, w:T, bias?:T) -> (y:T); T in f16 bf16 f32 f64, u8 i8 as f64
 *   stride: step of the window: height, width; default [1, 1]
 *   padding: zeros on both sides: height, width; twice as many entries: those in front, then those behind;
 *     default [0, 0]
 *   dilation: distance of neighbouring taps: height, width; default [1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full */
static inline tn_val tn_conv2d(tn_build *build, tn_val x, tn_val w, tn_val bias,
                               int64_t n_stride, const int64_t *stride,
                               int64_t n_padding, const int64_t *padding,
                               int64_t n_dilation, const int64_t *dilation, int64_t groups, int32_t math) {
  tn_op_begin(build, "conv2d");
  tn_op_arg(build, x);
  tn_op_arg(build, w);
  tn_op_arg(build, bias);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  return tn_op_end(build);
}

/* conv2d_grad_input: gradient of conv2d by its input
 * `dims` are those of x.
 *   (dy:T, w:T) -> (dx:T); T in f16 bf16 f32 f64
 *   stride: step of the window: height, width; default [1, 1]
 *   padding: zeros on both sides: height, width; twice as many entries: those in front, then those behind;
 *     default [0, 0]
 *   dilation: distance of neighbouring taps: height, width; default [1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   dims: dimensions of the result */
static inline tn_val tn_conv2d_grad_input(tn_build *build, tn_val dy, tn_val w,
                                          int64_t n_stride, const int64_t *stride,
                                          int64_t n_padding, const int64_t *padding,
                                          int64_t n_dilation, const int64_t *dilation, int64_t groups,
                                          int32_t math, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "conv2d_grad_input");
  tn_op_arg(build, dy);
  tn_op_arg(build, w);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* conv2d_grad_weight: gradient of conv2d by its weight
 * `dims` are those of w.
 *   (x:T, dy:T) -> (dw:T); T in f16 bf16 f32 f64
 *   stride: step of the window: height, width; default [1, 1]
 *   padding: zeros on both sides: height, width; twice as many entries: those in front, then those behind;
 *     default [0, 0]
 *   dilation: distance of neighbouring taps: height, width; default [1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   dims: dimensions of the result */
static inline tn_val tn_conv2d_grad_weight(tn_build *build, tn_val x, tn_val dy,
                                           int64_t n_stride, const int64_t *stride,
                                           int64_t n_padding, const int64_t *padding,
                                           int64_t n_dilation, const int64_t *dilation, int64_t groups,
                                           int32_t math, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "conv2d_grad_weight");
  tn_op_arg(build, x);
  tn_op_arg(build, dy);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* conv3d: three-dimensional convolution of (N, C, D, H, W) with (O, C / groups, d, h, w)
 * Cross-correlation, as in PyTorch.
 *   (x:T, w:T, bias?:T) -> (y:T); T in f16 bf16 f32 f64, u8 i8 as f64
 *   stride: step of the window: depth, height, width; default [1, 1, 1]
 *   padding: zeros on both sides: depth, height, width; twice as many entries: those in front, then those
 *     behind; default [0, 0, 0]
 *   dilation: distance of neighbouring taps: depth, height, width; default [1, 1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full */
static inline tn_val tn_conv3d(tn_build *build, tn_val x, tn_val w, tn_val bias,
                               int64_t n_stride, const int64_t *stride,
                               int64_t n_padding, const int64_t *padding,
                               int64_t n_dilation, const int64_t *dilation, int64_t groups, int32_t math) {
  tn_op_begin(build, "conv3d");
  tn_op_arg(build, x);
  tn_op_arg(build, w);
  tn_op_arg(build, bias);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  return tn_op_end(build);
}

/* conv3d_grad_input: gradient of conv3d by its input
 * `dims` are those of x.
 *   (dy:T, w:T) -> (dx:T); T in f16 bf16 f32 f64
 *   stride: step of the window: depth, height, width; default [1, 1, 1]
 *   padding: zeros on both sides: depth, height, width; twice as many entries: those in front, then those
 *     behind; default [0, 0, 0]
 *   dilation: distance of neighbouring taps: depth, height, width; default [1, 1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   dims: dimensions of the result */
static inline tn_val tn_conv3d_grad_input(tn_build *build, tn_val dy, tn_val w,
                                          int64_t n_stride, const int64_t *stride,
                                          int64_t n_padding, const int64_t *padding,
                                          int64_t n_dilation, const int64_t *dilation, int64_t groups,
                                          int32_t math, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "conv3d_grad_input");
  tn_op_arg(build, dy);
  tn_op_arg(build, w);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* conv3d_grad_weight: gradient of conv3d by its weight
 * `dims` are those of w.
 *   (x:T, dy:T) -> (dw:T); T in f16 bf16 f32 f64
 *   stride: step of the window: depth, height, width; default [1, 1, 1]
 *   padding: zeros on both sides: depth, height, width; twice as many entries: those in front, then those
 *     behind; default [0, 0, 0]
 *   dilation: distance of neighbouring taps: depth, height, width; default [1, 1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   dims: dimensions of the result */
static inline tn_val tn_conv3d_grad_weight(tn_build *build, tn_val x, tn_val dy,
                                           int64_t n_stride, const int64_t *stride,
                                           int64_t n_padding, const int64_t *padding,
                                           int64_t n_dilation, const int64_t *dilation, int64_t groups,
                                           int32_t math, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "conv3d_grad_weight");
  tn_op_arg(build, x);
  tn_op_arg(build, dy);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* conv_transpose1d: transposed convolution of (N, C, W) with (C, O / groups, w)
 * The gradient by its input of the convolution with the same attributes. Dumoulin and Visin, "A guide to
 * convolution arithmetic for deep learning", 2016, section 4.
 *   (x:T, w:T, bias?:T) -> (y:T); T in f16 bf16 f32 f64
 *   stride: step of the window: width; default [1]
 *   padding: zeros on both sides: width; twice as many entries: those in front, then those behind; default
 *     [0]
 *   dilation: distance of neighbouring taps: width; default [1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   output_padding: added to the size of the result, less than stride: width; default [0] */
static inline tn_val tn_conv_transpose1d(tn_build *build, tn_val x, tn_val w, tn_val bias,
                                         int64_t n_stride, const int64_t *stride,
                                         int64_t n_padding, const int64_t *padding,
                                         int64_t n_dilation, const int64_t *dilation, int64_t groups,
                                         int32_t math,
                                         int64_t n_output_padding, const int64_t *output_padding) {
  tn_op_begin(build, "conv_transpose1d");
  tn_op_arg(build, x);
  tn_op_arg(build, w);
  tn_op_arg(build, bias);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  if (n_output_padding != 0 || output_padding != NULL) tn_op_set_ints(build, "output_padding", n_output_padding, output_padding);
  return tn_op_end(build);
}

/* conv_transpose2d: transposed convolution of (N, C, H, W) with (C, O / groups, h, w)
 * The gradient by its input of the convolution with the same attributes. Dumoulin and Visin, "A guide to
 * convolution arithmetic for deep learning", 2016, section 4.
 *   (x:T, w:T, bias?:T) -> (y:T); T in f16 bf16 f32 f64
 *   stride: step of the window: height, width; default [1, 1]
 *   padding: zeros on both sides: height, width; twice as many entries: those in front, then those behind;
 *     default [0, 0]
 *   dilation: distance of neighbouring taps: height, width; default [1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   output_padding: added to the size of the result, less than stride: height, width; default [0, 0] */
static inline tn_val tn_conv_transpose2d(tn_build *build, tn_val x, tn_val w, tn_val bias,
                                         int64_t n_stride, const int64_t *stride,
                                         int64_t n_padding, const int64_t *padding,
                                         int64_t n_dilation, const int64_t *dilation, int64_t groups,
                                         int32_t math,
                                         int64_t n_output_padding, const int64_t *output_padding) {
  tn_op_begin(build, "conv_transpose2d");
  tn_op_arg(build, x);
  tn_op_arg(build, w);
  tn_op_arg(build, bias);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  if (n_output_padding != 0 || output_padding != NULL) tn_op_set_ints(build, "output_padding", n_output_padding, output_padding);
  return tn_op_end(build);
}

/* conv_transpose3d: transposed convolution of (N, C, D, H, W) with (C, O / groups, d, h, w)
 * The gradient by its input of the convolution with the same attributes. Dumoulin and Visin, "A guide to
 * convolution arithmetic for deep learning", 2016, section 4.
 *   (x:T, w:T, bias?:T) -> (y:T); T in f16 bf16 f32 f64
 *   stride: step of the window: depth, height, width; default [1, 1, 1]
 *   padding: zeros on both sides: depth, height, width; twice as many entries: those in front, then those
 *     behind; default [0, 0, 0]
 *   dilation: distance of neighbouring taps: depth, height, width; default [1, 1, 1]
 *   groups: independent groups of channels; >= 1; default 1
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   output_padding: added to the size of the result, less than stride: depth, height, width; default [0,
 *     0, 0] */
static inline tn_val tn_conv_transpose3d(tn_build *build, tn_val x, tn_val w, tn_val bias,
                                         int64_t n_stride, const int64_t *stride,
                                         int64_t n_padding, const int64_t *padding,
                                         int64_t n_dilation, const int64_t *dilation, int64_t groups,
                                         int32_t math,
                                         int64_t n_output_padding, const int64_t *output_padding) {
  tn_op_begin(build, "conv_transpose3d");
  tn_op_arg(build, x);
  tn_op_arg(build, w);
  tn_op_arg(build, bias);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  tn_op_set_int(build, "groups", groups);
  tn_op_set_int(build, "math", math);
  if (n_output_padding != 0 || output_padding != NULL) tn_op_set_ints(build, "output_padding", n_output_padding, output_padding);
  return tn_op_end(build);
}

/* copy: x in memory of its own
 *   (x:T) -> (y:T) */
static inline tn_val tn_copy(tn_build *build, tn_val x) {
  tn_op_begin(build, "copy");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* copysign: x with the sign of y
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_copysign(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "copysign");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* cos: cosine of radians
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_cos(tn_build *build, tn_val x) {
  tn_op_begin(build, "cos");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* cosh: hyperbolic cosine
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_cosh(tn_build *build, tn_val x) {
  tn_op_begin(build, "cosh");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* cosine_similarity: cosine of the angle of vectors along an axis
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64
 *   axis: dimension of the vectors, -rank .. rank-1; default 1
 *   epsilon: least norm; > 0; default 1e-8 */
static inline tn_val tn_cosine_similarity(tn_build *build, tn_val x, tn_val y, int64_t axis, double epsilon) {
  tn_op_begin(build, "cosine_similarity");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_float(build, "epsilon", epsilon);
  return tn_op_end(build);
}

/* crop: a part of each picture of a batch, at a place of its own, mirrored or not
 * x is (N, ..., H, W), the result (N, ..., height, width). The part of sample n begins at row start[n, 0]
 * and column start[n, 1]; outside of x it is 0. Its rows are in reverse order where mirror[n, 0] is not 0,
 * its columns where mirror[n, 1] is not 0. An absent operand is 0.
 *   (x:T, start?:I, mirror?:I) -> (y:T); I in i32 i64, u8 i8 as i32
 *   size: height and width of the part */
static inline tn_val tn_crop(tn_build *build, tn_val x, tn_val start, tn_val mirror,
                             int64_t n_size, const int64_t *size) {
  tn_op_begin(build, "crop");
  tn_op_arg(build, x);
  tn_op_arg(build, start);
  tn_op_arg(build, mirror);
  tn_op_set_ints(build, "size", n_size, size);
  return tn_op_end(build);
}

/* cross_entropy: -log softmax(logits)[target] of each row, not reduced, and log(sum(exp(logits)))
 * `smoothing` is PyTorch's label_smoothing.
 *   (logits:T, target:I) -> (loss:any, lse:any); T in f16 bf16 f32 f64; I in i32 i64, u8 i8 as i32
 *   axis: dimension of the classes, -rank .. rank-1; default -1
 *   ignore: rows with this target have loss 0; default -100
 *   smoothing: part of the target spread over all classes; [0, 1]; default 0 */
static inline tn_val tn_cross_entropy(tn_build *build, tn_val logits, tn_val target, int64_t axis,
                                      int64_t ignore, double smoothing) {
  tn_op_begin(build, "cross_entropy");
  tn_op_arg(build, logits);
  tn_op_arg(build, target);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "ignore", ignore);
  tn_op_set_float(build, "smoothing", smoothing);
  return tn_op_end(build);
}

/* cummax: largest element up to each one, and its index, the last of equals
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to go along, -rank .. rank-1; default -1
 *   reverse: from the last element to the first; default no */
static inline tn_val tn_cummax(tn_build *build, tn_val x, int64_t axis, int32_t reverse) {
  tn_op_begin(build, "cummax");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* cummin: smallest element up to each one, and its index, the last of equals
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to go along, -rank .. rank-1; default -1
 *   reverse: from the last element to the first; default no */
static inline tn_val tn_cummin(tn_build *build, tn_val x, int64_t axis, int32_t reverse) {
  tn_op_begin(build, "cummin");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* cumprod: product of the elements up to each one
 *   (x:T) -> (y:any); T in i32 i64 f16 bf16 f32 f64, bool u8 i8 as i64
 *   axis: dimension to go along, -rank .. rank-1; default -1
 *   exclusive: leave out the element itself; for sum and prod; default no
 *   reverse: from the last element to the first; default no */
static inline tn_val tn_cumprod(tn_build *build, tn_val x, int64_t axis, int32_t exclusive, int32_t reverse) {
  tn_op_begin(build, "cumprod");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "exclusive", exclusive);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* cumsum: sum of the elements up to each one
 *   (x:T) -> (y:any); T in i32 i64 f16 bf16 f32 f64, bool u8 i8 as i64
 *   axis: dimension to go along, -rank .. rank-1; default -1
 *   exclusive: leave out the element itself; for sum and prod; default no
 *   reverse: from the last element to the first; default no */
static inline tn_val tn_cumsum(tn_build *build, tn_val x, int64_t axis, int32_t exclusive, int32_t reverse) {
  tn_op_begin(build, "cumsum");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "exclusive", exclusive);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* cumulative: of the elements up to each one along an axis
 * Sums and products of integers wrap. A NaN stays in all results behind it.
 *   (x:T) -> (y:T); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to go along, -rank .. rank-1; default -1
 *   mode (0 sum, 1 prod, 2 max, 3 min, 4 logsumexp): what becomes of the elements; default sum
 *   exclusive: leave out the element itself; for sum and prod; default no
 *   reverse: from the last element to the first; default no */
static inline tn_val tn_cumulative(tn_build *build, tn_val x, int64_t axis, int32_t mode, int32_t exclusive,
                                   int32_t reverse) {
  tn_op_begin(build, "cumulative");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "mode", mode);
  tn_op_set_int(build, "exclusive", exclusive);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* deg2rad: degrees as radians
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_deg2rad(tn_build *build, tn_val x) {
  tn_op_begin(build, "deg2rad");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* detach: x, through which no gradient goes
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_detach(tn_build *build, tn_val x) {
  tn_op_begin(build, "detach");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* diag: a matrix with the vector x on a diagonal, or a diagonal of the matrix x
 *   (x:T) -> (y:T)
 *   diagonal: the diagonal, counted to the right; below the main one where negative; default 0 */
static inline tn_val tn_diag(tn_build *build, tn_val x, int64_t diagonal) {
  tn_op_begin(build, "diag");
  tn_op_arg(build, x);
  tn_op_set_int(build, "diagonal", diagonal);
  return tn_op_end(build);
}

/* diag_embed: matrices with the last dimension of x on a diagonal, 0 elsewhere
 *   (x:T) -> (y:T)
 *   diagonal: the diagonal, counted to the right; below the main one where negative; default 0 */
static inline tn_val tn_diag_embed(tn_build *build, tn_val x, int64_t diagonal) {
  tn_op_begin(build, "diag_embed");
  tn_op_arg(build, x);
  tn_op_set_int(build, "diagonal", diagonal);
  return tn_op_end(build);
}

/* diagonal: a diagonal of the matrices of two dimensions, as the last dimension
 *   (x:T) -> (y:T)
 *   diagonal: the diagonal, counted to the right; below the main one where negative; default 0
 *   axis1: the dimension of rows, -rank .. rank-1; default 0
 *   axis2: the dimension of columns; default 1 */
static inline tn_val tn_diagonal(tn_build *build, tn_val x, int64_t diagonal, int64_t axis1, int64_t axis2) {
  tn_op_begin(build, "diagonal");
  tn_op_arg(build, x);
  tn_op_set_int(build, "diagonal", diagonal);
  tn_op_set_int(build, "axis1", axis1);
  tn_op_set_int(build, "axis2", axis2);
  return tn_op_end(build);
}

/* digamma: derivative of lgamma
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_digamma(tn_build *build, tn_val x) {
  tn_op_begin(build, "digamma");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* div: x / y
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_div(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "div");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* dropout: zero with probability p, else x / (1 - p)
 * `iteration` is tn_build_counter(b, TN_ITERATION), `block` tn_build_counter(b, TN_BATCH_BLOCK), `stream`
 * tn_build_random_stream(b, use).
 *   (x:T, iteration:i64, block?:i64) -> (y:T); T in f16 bf16 f32 f64
 *   p: probability of a zero; [0, 1]; default 0.5
 *   stream: number of the random stream; default 0 */
static inline tn_val tn_dropout(tn_build *build, tn_val x, tn_val iteration, tn_val block, double p,
                                int64_t stream) {
  tn_op_begin(build, "dropout");
  tn_op_arg(build, x);
  tn_op_arg(build, iteration);
  tn_op_arg(build, block);
  tn_op_set_float(build, "p", p);
  tn_op_set_int(build, "stream", stream);
  return tn_op_end(build);
}

/* einsum: sum of the products of operands over the indices that the result lacks
 * "..." stands for further dimensions, which broadcast. Without an arrow, the result has the letters that
 * are met once, in alphabetical order. `_` may stand for a comma and for the arrow, as in bij_bjk_bik,
 * which is a word of the model language.
 *   (xs*:T) -> (y:T); T in f16 bf16 f32 f64, u8 i8 as f64
 *   equation: a letter for each dimension of each operand, and of the result: bij,bjk->bik, or bij_bjk_bik */
static inline tn_val tn_einsum(tn_build *build, int64_t n_xs, const tn_val *xs, const char *equation) {
  tn_op_begin(build, "einsum");
  for (int64_t i = 0; i < n_xs; i++) tn_op_arg(build, xs[i]);
  tn_op_set_text(build, "equation", equation);
  return tn_op_end(build);
}

/* elu: x, or alpha (exp(x) - 1) where x is not positive
 * D.-A. Clevert et al., "Fast and accurate deep network learning by exponential linear units", 2015.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   alpha: size of the lower limit; default 1 */
static inline tn_val tn_elu(tn_build *build, tn_val x, double alpha) {
  tn_op_begin(build, "elu");
  tn_op_arg(build, x);
  tn_op_set_float(build, "alpha", alpha);
  return tn_op_end(build);
}

/* embedding: the rows of a table with these ids
 * The result has the dims of ids, then the width of the table.
 *   (ids:I, table:T) -> (y:T); T in f16 bf16 f32 f64; I in i32 i64, u8 i8 as i32 */
static inline tn_val tn_embedding(tn_build *build, tn_val ids, tn_val table) {
  tn_op_begin(build, "embedding");
  tn_op_arg(build, ids);
  tn_op_arg(build, table);
  return tn_op_end(build);
}

/* embedding_grad: gradient of embedding: rows of dy added up by their id
 *   (ids:I, dy:T) -> (dtable:T); T in f16 bf16 f32 f64; I in i32 i64, u8 i8 as i32
 *   rows: rows of the table; >= 0 */
static inline tn_val tn_embedding_grad(tn_build *build, tn_val ids, tn_val dy, int64_t rows) {
  tn_op_begin(build, "embedding_grad");
  tn_op_arg(build, ids);
  tn_op_arg(build, dy);
  tn_op_set_int(build, "rows", rows);
  return tn_op_end(build);
}

/* eq: x equals y
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_eq(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "eq");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* erf: error function
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_erf(tn_build *build, tn_val x) {
  tn_op_begin(build, "erf");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* erfc: 1 - erf(x), accurate for large x
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_erfc(tn_build *build, tn_val x) {
  tn_op_begin(build, "erfc");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* erfinv: inverse of the error function
 * M. Giles, "Approximating the erfinv function", 2010.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_erfinv(tn_build *build, tn_val x) {
  tn_op_begin(build, "erfinv");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* exp: e to the power x
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_exp(tn_build *build, tn_val x) {
  tn_op_begin(build, "exp");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* exp2: 2 to the power x
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_exp2(tn_build *build, tn_val x) {
  tn_op_begin(build, "exp2");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* expand: x repeated along dimensions of size 1 and new leading ones
 *   (x:T) -> (y:T)
 *   dims: dimensions of the result; -1: that of x */
static inline tn_val tn_expand(tn_build *build, tn_val x, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "expand");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* expm1: exp(x) - 1, accurate near 0
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_expm1(tn_build *build, tn_val x) {
  tn_op_begin(build, "expm1");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* extend: x with a border around it
 * The modes of PyTorch's pad. reflect: the elements next to the edge, without it, in reverse order;
 * replicate: the edge; circular: the elements at the other end.
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   low: elements in front of each dimension
 *   high: elements behind each dimension
 *   mode (0 constant, 1 reflect, 2 replicate, 3 circular): what the border has; default constant
 *   value: of a constant border; default 0 */
static inline tn_val tn_extend(tn_build *build, tn_val x, int64_t n_low, const int64_t *low,
                               int64_t n_high, const int64_t *high, int32_t mode, double value) {
  tn_op_begin(build, "extend");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "low", n_low, low);
  tn_op_set_ints(build, "high", n_high, high);
  tn_op_set_int(build, "mode", mode);
  tn_op_set_float(build, "value", value);
  return tn_op_end(build);
}

/* fake_quantize: the nearest of 2^bits evenly spaced numbers, of which one is 0, between low and high; x
 * where low is above high
 * The gradient is straight-through: that of x inside of the range, 0 outside; low and high have none. Y.
 * Bengio et al., "Estimating or propagating gradients through stochastic neurons", 2013; B. Jacob et al.,
 * "Quantization and training of neural networks for efficient integer-arithmetic-only inference", CVPR
 * 2018.
 *   (x:T, low:T, high:T) -> (y:T); T in f16 bf16 f32 f64
 *   bits: there are 2^bits numbers, or one less; [2, 16]; default 8 */
static inline tn_val tn_fake_quantize(tn_build *build, tn_val x, tn_val low, tn_val high, int64_t bits) {
  tn_op_begin(build, "fake_quantize");
  tn_op_arg(build, x);
  tn_op_arg(build, low);
  tn_op_arg(build, high);
  tn_op_set_int(build, "bits", bits);
  return tn_op_end(build);
}

/* fake_quantize_channels: the nearest of 2^bits - 1 evenly spaced numbers, symmetric around 0, that reach
 * as far as the largest element of each slice
 * For weights: slice i along the axis is output channel i. The gradient is straight-through: no element is
 * outside of its range.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   bits: there are 2^bits numbers, or one less; [2, 16]; default 8
 *   axis: dimension of whose slices each has a range, -rank .. rank-1; default 0 */
static inline tn_val tn_fake_quantize_channels(tn_build *build, tn_val x, int64_t bits, int64_t axis) {
  tn_op_begin(build, "fake_quantize_channels");
  tn_op_arg(build, x);
  tn_op_set_int(build, "bits", bits);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* flip: x with the order along axes reversed
 *   (x:T) -> (y:T)
 *   axes: dimensions to reverse; none: all; default [] */
static inline tn_val tn_flip(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes) {
  tn_op_begin(build, "flip");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  return tn_op_end(build);
}

/* floor: largest integer not above x
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_floor(tn_build *build, tn_val x) {
  tn_op_begin(build, "floor");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* floor_divide: x / y rounded down; 0 for integers where y is 0
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_floor_divide(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "floor_divide");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* fmax: the larger one; the other one where one is NaN
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_fmax(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "fmax");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* fmin: the smaller one; the other one where one is NaN
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_fmin(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "fmin");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* fmod: the rest of x / y toward zero, of the sign of x; 0 for integers where y is 0
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_fmod(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "fmod");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* fold: images as the sums of their patches: the transpose of unfold
 * A list of one entry stands for both dimensions.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   size: height and width of the image
 *   kernel: height and width of a patch
 *   stride: distance of patches; none: 1; default []
 *   padding: zeros around the image; none: 0; default []
 *   dilation: distance of the pixels of a patch; none: 1; default [] */
static inline tn_val tn_fold(tn_build *build, tn_val x, int64_t n_size, const int64_t *size,
                             int64_t n_kernel, const int64_t *kernel,
                             int64_t n_stride, const int64_t *stride,
                             int64_t n_padding, const int64_t *padding,
                             int64_t n_dilation, const int64_t *dilation) {
  tn_op_begin(build, "fold");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "size", n_size, size);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  return tn_op_end(build);
}

/* frac: x without its whole part
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_frac(tn_build *build, tn_val x) {
  tn_op_begin(build, "frac");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* full: a tensor of one value
 *   () -> (y:any)
 *   dims: dimensions; none: a scalar; default []
 *   value: of every element; default 0
 *   dtype: element type; default f32 */
static inline tn_val tn_full(tn_build *build, const tn_type *type, double value) {
  tn_op_begin(build, "full");
  tn_op_set_ints(build, "dims", type->rank, type->dims);
  tn_op_set_int(build, "dtype", type->dtype);
  tn_op_set_float(build, "value", value);
  return tn_op_end(build);
}

/* gather: elements of x by their indices along an axis
 * An index of the rank of x: y[i, j, k] = x[i, index[i, j, k], k] for axis 1, with the dims of the index.
 * A vector: y[i, j, k] = x[i, index[j], k].
 *   (x:T, index:I) -> (y:T); I in i32 i64, u8 i8 as i32
 *   axis: dimension that is indexed, -rank .. rank-1; default 0 */
static inline tn_val tn_gather(tn_build *build, tn_val x, tn_val index, int64_t axis) {
  tn_op_begin(build, "gather");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* ge: x >= y
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_ge(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "ge");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* gelu: x times the normal distribution function of x
 * D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   approximate (0 none, 1 tanh): none: exact, with erf; tanh: the approximation with tanh; default none */
static inline tn_val tn_gelu(tn_build *build, tn_val x, int32_t approximate) {
  tn_op_begin(build, "gelu");
  tn_op_arg(build, x);
  tn_op_set_int(build, "approximate", approximate);
  return tn_op_end(build);
}

/* gelu_grad: gradient of gelu
 *   (dy:T, x:T) -> (dx:T); T in f16 bf16 f32 f64
 *   approximate (0 none, 1 tanh): none: exact, with erf; tanh: the approximation with tanh; default none */
static inline tn_val tn_gelu_grad(tn_build *build, tn_val dy, tn_val x, int32_t approximate) {
  tn_op_begin(build, "gelu_grad");
  tn_op_arg(build, dy);
  tn_op_arg(build, x);
  tn_op_set_int(build, "approximate", approximate);
  return tn_op_end(build);
}

/* general_attention: attention with a mask, a window, bounded scores or linear biases
 * The mask broadcasts to (batch, heads, queries, keys): bool, true where a query sees a key, or floats
 * that are added to the scores. The result of a query that sees no key is 0. The order is scale, softcap,
 * alibi, mask. I. Beltagy, M. Peters, A. Cohan, "Longformer", 2020 (window); Gemma Team, "Gemma 2", 2024
 * (softcap); O. Press, N. Smith, M. Lewis, "Train short, test long", ICLR 2022 (alibi).
 *   (q:T, k:T, v:T, mask?:any) -> (y:T); T in f16 bf16 f32 f64
 *   causal: query i sees keys up to i + (keys - queries); default no
 *   scale: of the products; 0: 1 / sqrt(head width); default 0
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full
 *   heads: of operands (batch, tokens, heads * width); >= 0; default 0
 *   window: a query sees keys at a distance below this; 0: at any; >= 0; default 0
 *   softcap: scores become softcap tanh(score / softcap); 0: they stay; >= 0; default 0
 *   alibi: scores fall with the distance, in each head with another slope; default no */
static inline tn_val tn_general_attention(tn_build *build, tn_val q, tn_val k, tn_val v, tn_val mask,
                                          int32_t causal, double scale, int32_t math, int64_t heads,
                                          int64_t window, double softcap, int32_t alibi) {
  tn_op_begin(build, "general_attention");
  tn_op_arg(build, q);
  tn_op_arg(build, k);
  tn_op_arg(build, v);
  tn_op_arg(build, mask);
  tn_op_set_int(build, "causal", causal);
  tn_op_set_float(build, "scale", scale);
  tn_op_set_int(build, "math", math);
  tn_op_set_int(build, "heads", heads);
  tn_op_set_int(build, "window", window);
  tn_op_set_float(build, "softcap", softcap);
  tn_op_set_int(build, "alibi", alibi);
  return tn_op_end(build);
}

/* global_avg_pool: mean of each channel: (N, C, spatial...) to (N, C)
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_global_avg_pool(tn_build *build, tn_val x) {
  tn_op_begin(build, "global_avg_pool");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* global_max_pool: largest element of each channel: (N, C, spatial...) to (N, C)
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64, u8 i8 as f32 */
static inline tn_val tn_global_max_pool(tn_build *build, tn_val x) {
  tn_op_begin(build, "global_max_pool");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* glu: the first half of x, each element times a function of that in the second half
 * Y. Dauphin, A. Fan, M. Auli, D. Grangier, "Language modeling with gated convolutional networks", 2017;
 * other functions than sigmoid: N. Shazeer, "GLU variants improve Transformer", 2020.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axis: dimension that is halved, -rank .. rank-1; default -1
 *   gate (0 sigmoid, 1 tanh, 2 relu, 3 gelu, 4 silu): function of the second half; default sigmoid */
static inline tn_val tn_glu(tn_build *build, tn_val x, int64_t axis, int32_t gate) {
  tn_op_begin(build, "glu");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "gate", gate);
  return tn_op_end(build);
}

/* grid_sample: elements of (N, C, H, W) at the positions (N, H', W', 2): (N, C, H', W')
 * A position is column and row, from -1 to 1. Those of NaN give 0. Jaderberg et al., "Spatial transformer
 * networks", 2015.
 *   (x:T, grid:T) -> (y:T); T in f16 bf16 f32 f64
 *   mode (0 bilinear, 1 nearest): elements between positions; default bilinear
 *   padding_mode (0 zeros, 1 border, 2 reflection): elements outside the image; default zeros
 *   align_corners: -1 and 1 are the centers of the outermost elements, instead of their outer edges;
 *     default no */
static inline tn_val tn_grid_sample(tn_build *build, tn_val x, tn_val grid, int32_t mode,
                                    int32_t padding_mode, int32_t align_corners) {
  tn_op_begin(build, "grid_sample");
  tn_op_arg(build, x);
  tn_op_arg(build, grid);
  tn_op_set_int(build, "mode", mode);
  tn_op_set_int(build, "padding_mode", padding_mode);
  tn_op_set_int(build, "align_corners", align_corners);
  return tn_op_end(build);
}

/* group_norm: (x - mean) / sqrt(variance + epsilon) * weight + bias, by the statistics of each group of
 * channels of each element; biased variance
 * x is (N, C, ...), weight and bias are (C). With as many groups as channels it is instance normalization.
 * Y. Wu, K. He, "Group normalization", ECCV 2018; D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance
 * normalization", 2016.
 *   (x:T, weight?:A, bias?:A) -> (y:T); T in f16 bf16 f32 f64; A in f32 f64
 *   epsilon: added to the variance; >= 0; default 1e-5
 *   groups: into how many groups the channels are divided; >= 1; default 1 */
static inline tn_val tn_group_norm(tn_build *build, tn_val x, tn_val weight, tn_val bias, double epsilon,
                                   int64_t groups) {
  tn_op_begin(build, "group_norm");
  tn_op_arg(build, x);
  tn_op_arg(build, weight);
  tn_op_arg(build, bias);
  tn_op_set_float(build, "epsilon", epsilon);
  tn_op_set_int(build, "groups", groups);
  return tn_op_end(build);
}

/* gt: x > y
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_gt(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "gt");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* hardshrink: x, or 0 where x is lambda or less away from it
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   lambda: distance; >= 0; default 0.5 */
static inline tn_val tn_hardshrink(tn_build *build, tn_val x, double lambda) {
  tn_op_begin(build, "hardshrink");
  tn_op_arg(build, x);
  tn_op_set_float(build, "lambda", lambda);
  return tn_op_end(build);
}

/* hardsigmoid: x / 6 + 1/2 between 0 and 1
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_hardsigmoid(tn_build *build, tn_val x) {
  tn_op_begin(build, "hardsigmoid");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* hardswish: x hardsigmoid(x)
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_hardswish(tn_build *build, tn_val x) {
  tn_op_begin(build, "hardswish");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* hardtanh: x between min and max
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   min: lower limit; default -1
 *   max: upper limit; default 1 */
static inline tn_val tn_hardtanh(tn_build *build, tn_val x, double min, double max) {
  tn_op_begin(build, "hardtanh");
  tn_op_arg(build, x);
  tn_op_set_float(build, "min", min);
  tn_op_set_float(build, "max", max);
  return tn_op_end(build);
}

/* hypot: sqrt(x^2 + y^2) without overflow
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_hypot(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "hypot");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* index_add: x, with updates added to the slices of their indices
 *   (x:T, index:I, updates:T) -> (y:T); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32; I in i32 i64, u8 i8
 *   as i32
 *   axis: dimension that is indexed, -rank .. rank-1; default 0 */
static inline tn_val tn_index_add(tn_build *build, tn_val x, tn_val index, tn_val updates, int64_t axis) {
  tn_op_begin(build, "index_add");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_arg(build, updates);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* index_copy: x, with updates in place of the slices of their indices
 *   (x:T, index:I, updates:T) -> (y:T); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32; I in i32 i64, u8 i8
 *   as i32
 *   axis: dimension that is indexed, -rank .. rank-1; default 0 */
static inline tn_val tn_index_copy(tn_build *build, tn_val x, tn_val index, tn_val updates, int64_t axis) {
  tn_op_begin(build, "index_copy");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_arg(build, updates);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* index_fill: x, with a value in place of the slices of the indices
 *   (x:T, index:I) -> (y:T); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32; I in i32 i64, u8 i8 as i32
 *   axis: dimension that is indexed, -rank .. rank-1; default 0
 *   value: of the elements; default 0 */
static inline tn_val tn_index_fill(tn_build *build, tn_val x, tn_val index, int64_t axis, double value) {
  tn_op_begin(build, "index_fill");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_float(build, "value", value);
  return tn_op_end(build);
}

/* index_select: slices of x by their indices along an axis
 * The dims of the index, of any rank, take the place of the axis.
 *   (x:T, index:I) -> (y:T); I in i32 i64, u8 i8 as i32
 *   axis: dimension that is indexed, -rank .. rank-1; default 0 */
static inline tn_val tn_index_select(tn_build *build, tn_val x, tn_val index, int64_t axis) {
  tn_op_begin(build, "index_select");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* interpolate: images of another size: (N, C, spatial...)
 * The modes and positions of PyTorch's interpolate. Each element of the result is a sum over all elements
 * of its row or column, most with weight 0: an infinite element makes the others NaN.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   size: of the result: one number, or one for each spatial dimension; default []
 *   scale: factor, instead of size; > 0; default []
 *   mode (0 nearest, 1 nearest_exact, 2 linear, 3 bilinear, 4 trilinear, 5 bicubic, 6 area): linear,
 *     bilinear and trilinear are one, for any number of dimensions; default nearest
 *   align_corners: the outermost elements of x and of the result lie at the same places, instead of their
 *     outer edges; default no
 *   antialias: linear and cubic filters are as wide as the factor by which the size falls; default no */
static inline tn_val tn_interpolate(tn_build *build, tn_val x, int64_t n_size, const int64_t *size,
                                    int64_t n_scale, const double *scale, int32_t mode,
                                    int32_t align_corners, int32_t antialias) {
  tn_op_begin(build, "interpolate");
  tn_op_arg(build, x);
  if (n_size != 0 || size != NULL) tn_op_set_ints(build, "size", n_size, size);
  if (n_scale != 0 || scale != NULL) tn_op_set_floats(build, "scale", n_scale, scale);
  tn_op_set_int(build, "mode", mode);
  tn_op_set_int(build, "align_corners", align_corners);
  tn_op_set_int(build, "antialias", antialias);
  return tn_op_end(build);
}

/* iota: 0, 1, 2 ... along one axis
 *   () -> (y:any)
 *   dims: dimensions
 *   axis: along which to count, -rank .. rank-1; default 0
 *   dtype: element type; default i64 */
static inline tn_val tn_iota(tn_build *build, const tn_type *type, int64_t axis) {
  tn_op_begin(build, "iota");
  tn_op_set_ints(build, "dims", type->rank, type->dims);
  tn_op_set_int(build, "dtype", type->dtype);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* is_close: whether |x - y| <= atol + rtol |y|
 *   (x:T, y:T) -> (z:bool); T in f16 bf16 f32 f64
 *   rtol: of the size of y; >= 0; default 1e-5
 *   atol: absolute; >= 0; default 1e-8
 *   equal_nan: 1: two NaN are close; default 0 */
static inline tn_val tn_is_close(tn_build *build, tn_val x, tn_val y, double rtol, double atol,
                                 double equal_nan) {
  tn_op_begin(build, "is_close");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  tn_op_set_float(build, "rtol", rtol);
  tn_op_set_float(build, "atol", atol);
  tn_op_set_float(build, "equal_nan", equal_nan);
  return tn_op_end(build);
}

/* is_finite: neither infinite nor NaN
 *   (x:T) -> (y:bool); T in f16 bf16 f32 f64 */
static inline tn_val tn_is_finite(tn_build *build, tn_val x) {
  tn_op_begin(build, "is_finite");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* is_inf: whether x is infinite
 *   (x:T) -> (y:bool); T in f16 bf16 f32 f64 */
static inline tn_val tn_is_inf(tn_build *build, tn_val x) {
  tn_op_begin(build, "is_inf");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* is_nan: whether x is NaN
 *   (x:T) -> (y:bool); T in f16 bf16 f32 f64 */
static inline tn_val tn_is_nan(tn_build *build, tn_val x) {
  tn_op_begin(build, "is_nan");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* is_neg_inf: whether x is -infinity
 *   (x:T) -> (y:bool); T in f16 bf16 f32 f64 */
static inline tn_val tn_is_neg_inf(tn_build *build, tn_val x) {
  tn_op_begin(build, "is_neg_inf");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* is_pos_inf: whether x is infinity
 *   (x:T) -> (y:bool); T in f16 bf16 f32 f64 */
static inline tn_val tn_is_pos_inf(tn_build *build, tn_val x) {
  tn_op_begin(build, "is_pos_inf");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* kthvalue: k-th smallest element along an axis, and its index
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   k: which one; 1: the smallest; >= 1
 *   axis: dimension to search, -rank .. rank-1; default -1
 *   keep: keep the dimension as 1; default no */
static inline tn_val tn_kthvalue(tn_build *build, tn_val x, int64_t k, int64_t axis, int32_t keep) {
  tn_op_begin(build, "kthvalue");
  tn_op_arg(build, x);
  tn_op_set_int(build, "k", k);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* last_step: the last step of each sequence
 * x (N, steps, ...) and the number of steps of each sequence (N) to (N, ...): y[i] = x[i, length[i] - 1];
 * the first step where the length is 0.
 *   (x:T, length:I) -> (y:T); I in i32 i64, u8 i8 as i32 */
static inline tn_val tn_last_step(tn_build *build, tn_val x, tn_val length) {
  tn_op_begin(build, "last_step");
  tn_op_arg(build, x);
  tn_op_arg(build, length);
  return tn_op_end(build);
}

/* layer_norm: (x - mean) rstd weight + bias over trailing dimensions, with rstd = 1 / sqrt(biased variance
 * + epsilon)
 * J. Ba, J. Kiros, G. Hinton, "Layer normalization", 2016.
 *   (x:T, weight?:A, bias?:A) -> (y:T, mean:A, rstd:A); T in f16 bf16 f32 f64; A in f32 f64
 *   epsilon: added to the variance; >= 0; default 1e-5
 *   trailing: how many trailing dimensions are normalized; >= 1; default 1 */
static inline tn_val tn_layer_norm(tn_build *build, tn_val x, tn_val weight, tn_val bias, double epsilon,
                                   int64_t trailing) {
  tn_op_begin(build, "layer_norm");
  tn_op_arg(build, x);
  tn_op_arg(build, weight);
  tn_op_arg(build, bias);
  tn_op_set_float(build, "epsilon", epsilon);
  tn_op_set_int(build, "trailing", trailing);
  return tn_op_end(build);
}

/* layer_norm_grad: gradient of layer_norm's first result
 *   (dy:T, x:T, mean:A, rstd:A, weight?:A) -> (dx:T, dweight:A, dbias:A); T in f16 bf16 f32 f64; A in f32
 *   f64
 *   trailing: how many trailing dimensions are normalized; >= 1; default 1 */
static inline tn_val tn_layer_norm_grad(tn_build *build, tn_val dy, tn_val x, tn_val mean, tn_val rstd,
                                        tn_val weight, int64_t trailing) {
  tn_op_begin(build, "layer_norm_grad");
  tn_op_arg(build, dy);
  tn_op_arg(build, x);
  tn_op_arg(build, mean);
  tn_op_arg(build, rstd);
  tn_op_arg(build, weight);
  tn_op_set_int(build, "trailing", trailing);
  return tn_op_end(build);
}

/* le: x <= y
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_le(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "le");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* leaky_relu: x, or slope * x where x is not positive
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   slope: slope below zero; [-1e37, 1e37]; default 0.01 */
static inline tn_val tn_leaky_relu(tn_build *build, tn_val x, double slope) {
  tn_op_begin(build, "leaky_relu");
  tn_op_arg(build, x);
  tn_op_set_float(build, "slope", slope);
  return tn_op_end(build);
}

/* lerp: x + weight (y - x)
 *   (x:T, y:T, weight:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_lerp(tn_build *build, tn_val x, tn_val y, tn_val weight) {
  tn_op_begin(build, "lerp");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  tn_op_arg(build, weight);
  return tn_op_end(build);
}

/* lgamma: logarithm of the gamma function's absolute value
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_lgamma(tn_build *build, tn_val x) {
  tn_op_begin(build, "lgamma");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* local_response_norm: x / (k + alpha mean(x^2))^beta, by the mean over neighbouring channels
 * The mean divides by `size` where fewer channels exist, too, as PyTorch's. A. Krizhevsky, I. Sutskever,
 * G. Hinton, "ImageNet classification with deep convolutional neural networks", NeurIPS 2012.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   size: how many neighbouring channels are summed; [1, 65535]
 *   alpha: factor of the mean of the squares; >= 0; default 1e-4
 *   beta: exponent; default 0.75
 *   k: added to the mean; > 0; default 1 */
static inline tn_val tn_local_response_norm(tn_build *build, tn_val x, int64_t size, double alpha,
                                            double beta, double k) {
  tn_op_begin(build, "local_response_norm");
  tn_op_arg(build, x);
  tn_op_set_int(build, "size", size);
  tn_op_set_float(build, "alpha", alpha);
  tn_op_set_float(build, "beta", beta);
  tn_op_set_float(build, "k", k);
  return tn_op_end(build);
}

/* log: natural logarithm
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_log(tn_build *build, tn_val x) {
  tn_op_begin(build, "log");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* log10: logarithm to base 10
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_log10(tn_build *build, tn_val x) {
  tn_op_begin(build, "log10");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* log1p: log(1 + x), accurate near 0
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_log1p(tn_build *build, tn_val x) {
  tn_op_begin(build, "log1p");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* log2: logarithm to base 2
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_log2(tn_build *build, tn_val x) {
  tn_op_begin(build, "log2");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* log_sigmoid: logarithm of the sigmoid
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_log_sigmoid(tn_build *build, tn_val x) {
  tn_op_begin(build, "log_sigmoid");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* log_softmax: x - log(sum(exp(x))) along one dimension
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axis: dimension of the classes, -rank .. rank-1; default -1 */
static inline tn_val tn_log_softmax(tn_build *build, tn_val x, int64_t axis) {
  tn_op_begin(build, "log_softmax");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* logaddexp: log(exp(x) + exp(y))
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_logaddexp(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "logaddexp");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* logaddexp2: log2(2^x + 2^y)
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_logaddexp2(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "logaddexp2");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* logcumsumexp: logarithm of the sum of the exponentials up to each one
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axis: dimension to go along, -rank .. rank-1; default -1
 *   reverse: from the last element to the first; default no */
static inline tn_val tn_logcumsumexp(tn_build *build, tn_val x, int64_t axis, int32_t reverse) {
  tn_op_begin(build, "logcumsumexp");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* logical_and: both differ from 0
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_logical_and(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "logical_and");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* logical_not: x is 0
 *   (x:T) -> (y:bool) */
static inline tn_val tn_logical_not(tn_build *build, tn_val x) {
  tn_op_begin(build, "logical_not");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* logical_or: either differs from 0
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_logical_or(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "logical_or");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* logical_xor: one of them differs from 0
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_logical_xor(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "logical_xor");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* logit: log(x / (1 - x)), inverse of the sigmoid
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   eps: x is taken between eps and 1 - eps; negative: as it is; default -1 */
static inline tn_val tn_logit(tn_build *build, tn_val x, double eps) {
  tn_op_begin(build, "logit");
  tn_op_arg(build, x);
  tn_op_set_float(build, "eps", eps);
  return tn_op_end(build);
}

/* logsumexp: logarithm of the sum of the exponentials
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_logsumexp(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes,
                                  int32_t keep) {
  tn_op_begin(build, "logsumexp");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* lp_pool1d: (sum of x^p)^(1/p) over each window
 * As PyTorch's, without absolute values: x below 0 takes a p for which x^p is defined.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: width; default [0]
 *   ceil: a last window may reach over the border; default no
 *   p: of the norm; > 0; default 2 */
static inline tn_val tn_lp_pool1d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                  int64_t n_stride, const int64_t *stride,
                                  int64_t n_padding, const int64_t *padding, int32_t ceil, double p) {
  tn_op_begin(build, "lp_pool1d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_float(build, "p", p);
  return tn_op_end(build);
}

/* lp_pool2d: (sum of x^p)^(1/p) over each window
 * As PyTorch's, without absolute values: x below 0 takes a p for which x^p is defined.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: height, width; default [0, 0]
 *   ceil: a last window may reach over the border; default no
 *   p: of the norm; > 0; default 2 */
static inline tn_val tn_lp_pool2d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                  int64_t n_stride, const int64_t *stride,
                                  int64_t n_padding, const int64_t *padding, int32_t ceil, double p) {
  tn_op_begin(build, "lp_pool2d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_float(build, "p", p);
  return tn_op_end(build);
}

/* lp_pool3d: (sum of x^p)^(1/p) over each window
 * As PyTorch's, without absolute values: x below 0 takes a p for which x^p is defined.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: depth, height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: depth, height, width; default [0, 0, 0]
 *   ceil: a last window may reach over the border; default no
 *   p: of the norm; > 0; default 2 */
static inline tn_val tn_lp_pool3d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                  int64_t n_stride, const int64_t *stride,
                                  int64_t n_padding, const int64_t *padding, int32_t ceil, double p) {
  tn_op_begin(build, "lp_pool3d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_float(build, "p", p);
  return tn_op_end(build);
}

/* lt: x < y
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_lt(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "lt");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* masked_fill: value where mask holds, else x
 *   (x:T, mask:bool) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   value: in the place of x */
static inline tn_val tn_masked_fill(tn_build *build, tn_val x, tn_val mask, double value) {
  tn_op_begin(build, "masked_fill");
  tn_op_arg(build, x);
  tn_op_arg(build, mask);
  tn_op_set_float(build, "value", value);
  return tn_op_end(build);
}

/* matmul: matrix product of the last two dimensions, plus a bias for each column
 * The dimensions before the last two broadcast.
 *   (a:T, b:T, bias?:T) -> (y:T); T in f16 bf16 f32 f64, u8 i8 as f64
 *   transpose_a: swap the last two dimensions of a; default no
 *   transpose_b: swap the last two dimensions of b; default no
 *   math (0 full, 1 tf32): may round operands of f32 to TF32; default full */
static inline tn_val tn_matmul(tn_build *build, tn_val a, tn_val b, tn_val bias, int32_t transpose_a,
                               int32_t transpose_b, int32_t math) {
  tn_op_begin(build, "matmul");
  tn_op_arg(build, a);
  tn_op_arg(build, b);
  tn_op_arg(build, bias);
  tn_op_set_int(build, "transpose_a", transpose_a);
  tn_op_set_int(build, "transpose_b", transpose_b);
  tn_op_set_int(build, "math", math);
  return tn_op_end(build);
}

/* max_pool1d: largest element of each window of (N, C, W), and where it lies; NaN is largest, then the
 * first
 * `ceil` is PyTorch's ceil_mode.
 *   (x:T) -> (y:T, index:i32); T in f16 bf16 f32 f64, u8 i8 as f32
 *   kernel: size of the window: width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: width; default [0]
 *   ceil: a last window may reach over the border; default no */
static inline tn_val tn_max_pool1d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                   int64_t n_stride, const int64_t *stride,
                                   int64_t n_padding, const int64_t *padding, int32_t ceil) {
  tn_op_begin(build, "max_pool1d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  return tn_op_end(build);
}

/* max_pool2d: largest element of each window, and where it lies in its H*W plane; NaN is largest, then the
 * first
 * The index counts in row-major order. `ceil` is PyTorch's ceil_mode.
 *   (x:T) -> (y:T, index:i32); T in f16 bf16 f32 f64, u8 i8 as f32
 *   kernel: size of the window: height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: height, width; default [0, 0]
 *   ceil: a last window may reach over the border; default no */
static inline tn_val tn_max_pool2d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                   int64_t n_stride, const int64_t *stride,
                                   int64_t n_padding, const int64_t *padding, int32_t ceil) {
  tn_op_begin(build, "max_pool2d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  return tn_op_end(build);
}

/* max_pool2d_grad: gradient of max_pool2d: dy added where the index, which lies in its window, points
 * `dims` are those of x.
 *   (dy:T, index:i32) -> (dx:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: height, width; default [0, 0]
 *   ceil: a last window may reach over the border; default no
 *   dims: dimensions of the result */
static inline tn_val tn_max_pool2d_grad(tn_build *build, tn_val dy, tn_val index,
                                        int64_t n_kernel, const int64_t *kernel,
                                        int64_t n_stride, const int64_t *stride,
                                        int64_t n_padding, const int64_t *padding, int32_t ceil,
                                        int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "max_pool2d_grad");
  tn_op_arg(build, dy);
  tn_op_arg(build, index);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* max_pool3d: largest element of each window of (N, C, D, H, W), and where it lies in its D*H*W volume;
 * NaN is largest, then the first
 * `ceil` is PyTorch's ceil_mode.
 *   (x:T) -> (y:T, index:i32); T in f16 bf16 f32 f64, u8 i8 as f32
 *   kernel: size of the window: depth, height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: depth, height, width; default [0, 0, 0]
 *   ceil: a last window may reach over the border; default no */
static inline tn_val tn_max_pool3d(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                                   int64_t n_stride, const int64_t *stride,
                                   int64_t n_padding, const int64_t *padding, int32_t ceil) {
  tn_op_begin(build, "max_pool3d");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  return tn_op_end(build);
}

/* max_unpool1d: zeros with the elements of x where the index of max_pool1d, which lies in its window,
 * points
 * Elements of windows that overlap and have one maximum add up. Zeiler and Fergus, "Visualizing and
 * understanding convolutional networks", 2014.
 *   (x:T, index:i32) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: width; default [0]
 *   ceil: a last window may reach over the border; default no
 *   size: spatial dimensions of the result; none: as small as the windows allow; default [] */
static inline tn_val tn_max_unpool1d(tn_build *build, tn_val x, tn_val index,
                                     int64_t n_kernel, const int64_t *kernel,
                                     int64_t n_stride, const int64_t *stride,
                                     int64_t n_padding, const int64_t *padding, int32_t ceil,
                                     int64_t n_size, const int64_t *size) {
  tn_op_begin(build, "max_unpool1d");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  if (n_size != 0 || size != NULL) tn_op_set_ints(build, "size", n_size, size);
  return tn_op_end(build);
}

/* max_unpool2d: zeros with the elements of x where the index of max_pool2d, which lies in its window,
 * points
 * Elements of windows that overlap and have one maximum add up. Zeiler and Fergus, "Visualizing and
 * understanding convolutional networks", 2014.
 *   (x:T, index:i32) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: height, width; default [0, 0]
 *   ceil: a last window may reach over the border; default no
 *   size: spatial dimensions of the result; none: as small as the windows allow; default [] */
static inline tn_val tn_max_unpool2d(tn_build *build, tn_val x, tn_val index,
                                     int64_t n_kernel, const int64_t *kernel,
                                     int64_t n_stride, const int64_t *stride,
                                     int64_t n_padding, const int64_t *padding, int32_t ceil,
                                     int64_t n_size, const int64_t *size) {
  tn_op_begin(build, "max_unpool2d");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  if (n_size != 0 || size != NULL) tn_op_set_ints(build, "size", n_size, size);
  return tn_op_end(build);
}

/* max_unpool3d: zeros with the elements of x where the index of max_pool3d, which lies in its window,
 * points
 * Elements of windows that overlap and have one maximum add up. Zeiler and Fergus, "Visualizing and
 * understanding convolutional networks", 2014.
 *   (x:T, index:i32) -> (y:T); T in f16 bf16 f32 f64
 *   kernel: size of the window: depth, height, width
 *   stride: step of the window; none: its size; default []
 *   padding: on both sides: depth, height, width; default [0, 0, 0]
 *   ceil: a last window may reach over the border; default no
 *   size: spatial dimensions of the result; none: as small as the windows allow; default [] */
static inline tn_val tn_max_unpool3d(tn_build *build, tn_val x, tn_val index,
                                     int64_t n_kernel, const int64_t *kernel,
                                     int64_t n_stride, const int64_t *stride,
                                     int64_t n_padding, const int64_t *padding, int32_t ceil,
                                     int64_t n_size, const int64_t *size) {
  tn_op_begin(build, "max_unpool3d");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  tn_op_set_int(build, "ceil", ceil);
  if (n_size != 0 || size != NULL) tn_op_set_ints(build, "size", n_size, size);
  return tn_op_end(build);
}

/* max_with_index: largest element along an axis, NaN if there is one, and its index, the first of equals
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to search, -rank .. rank-1; default -1
 *   keep: keep the dimension as 1; default no */
static inline tn_val tn_max_with_index(tn_build *build, tn_val x, int64_t axis, int32_t keep) {
  tn_op_begin(build, "max_with_index");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* maximum: the larger one; NaN if either is
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_maximum(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "maximum");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* median: middle element along an axis, the lower one of two, NaN if there is one, and its index
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to search, -rank .. rank-1; default -1
 *   keep: keep the dimension as 1; default no */
static inline tn_val tn_median(tn_build *build, tn_val x, int64_t axis, int32_t keep) {
  tn_op_begin(build, "median");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* min_with_index: smallest element along an axis, NaN if there is one, and its index, the first of equals
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to search, -rank .. rank-1; default -1
 *   keep: keep the dimension as 1; default no */
static inline tn_val tn_min_with_index(tn_build *build, tn_val x, int64_t axis, int32_t keep) {
  tn_op_begin(build, "min_with_index");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* minimum: the smaller one; NaN if either is
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_minimum(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "minimum");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* mish: x tanh(softplus(x))
 * D. Misra, "Mish: a self regularized non-monotonic activation function", 2019.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_mish(tn_build *build, tn_val x) {
  tn_op_begin(build, "mish");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* mode: most frequent element along an axis, the smallest of those that are as frequent, and its index,
 * the last of equals
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to search, -rank .. rank-1; default -1
 *   keep: keep the dimension as 1; default no */
static inline tn_val tn_mode(tn_build *build, tn_val x, int64_t axis, int32_t keep) {
  tn_op_begin(build, "mode");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* moments: mean and biased variance, in f32 (f64 for f64); NaN over nothing
 * The relative error of the variance is at most c = 8 (sqrt(n) + 1) eps for n elements, eps of the type of
 * the results, however far the mean is from 0, and c (1 + mean^2 / variance) by kernels that declare
 * tn_variant.plain_sums.
 *   (x:T) -> (mean:any, variance:any); T in f16 bf16 f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default [] */
static inline tn_val tn_moments(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes) {
  tn_op_begin(build, "moments");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  return tn_op_end(build);
}

/* movedim: x with dimensions moved to other places
 *   (x:T) -> (y:T)
 *   source: dimensions that move, -rank .. rank-1
 *   destination: where each of them goes */
static inline tn_val tn_movedim(tn_build *build, tn_val x, int64_t n_source, const int64_t *source,
                                int64_t n_destination, const int64_t *destination) {
  tn_op_begin(build, "movedim");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "source", n_source, source);
  tn_op_set_ints(build, "destination", n_destination, destination);
  return tn_op_end(build);
}

/* mul: x y; integers wrap
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_mul(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "mul");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* nan_to_num: x, with numbers in the places of NaN and infinities
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   nan: for NaN; default 0
 *   posinf: for infinity; inf: the greatest finite number; default inf
 *   neginf: for -infinity; -inf: the least finite number; default -inf */
static inline tn_val tn_nan_to_num(tn_build *build, tn_val x, double nan, double posinf, double neginf) {
  tn_op_begin(build, "nan_to_num");
  tn_op_arg(build, x);
  tn_op_set_float(build, "nan", nan);
  tn_op_set_float(build, "posinf", posinf);
  tn_op_set_float(build, "neginf", neginf);
  return tn_op_end(build);
}

/* nanmedian: middle element along an axis of those that are no NaN, the lower one of two, and its index
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to search, -rank .. rank-1; default -1
 *   keep: keep the dimension as 1; default no */
static inline tn_val tn_nanmedian(tn_build *build, tn_val x, int64_t axis, int32_t keep) {
  tn_op_begin(build, "nanmedian");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* narrow: some neighbouring elements along an axis
 *   (x:T) -> (y:T)
 *   axis: dimension to cut, -rank .. rank-1
 *   start: first element, from the end where negative
 *   length: number of elements */
static inline tn_val tn_narrow(tn_build *build, tn_val x, int64_t axis, int64_t start, int64_t length) {
  tn_op_begin(build, "narrow");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "start", start);
  tn_op_set_int(build, "length", length);
  return tn_op_end(build);
}

/* ne: x differs from y
 *   (x:T, y:T) -> (z:bool) */
static inline tn_val tn_ne(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "ne");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* neg: -x
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_neg(tn_build *build, tn_val x) {
  tn_op_begin(build, "neg");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* norm: p-norm
 * The gradient is 0 where the norm is 0.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   p: the root of the sum of |x|^p; inf: the largest |x|; 0: how many are not 0; default 2
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_norm(tn_build *build, tn_val x, double p, int64_t n_axes, const int64_t *axes,
                             int32_t keep) {
  tn_op_begin(build, "norm");
  tn_op_arg(build, x);
  tn_op_set_float(build, "p", p);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* norm_grad_sums: sums of dy and of dy (x - mean) rstd
 * The sum of dy, and of dy (x - mean) rstd.
 *   (dy:T, x:T, mean:A, rstd:A) -> (sum:A, dot:A); T in f16 bf16 f32 f64; A in f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default [] */
static inline tn_val tn_norm_grad_sums(tn_build *build, tn_val dy, tn_val x, tn_val mean, tn_val rstd,
                                       int64_t n_axes, const int64_t *axes) {
  tn_op_begin(build, "norm_grad_sums");
  tn_op_arg(build, dy);
  tn_op_arg(build, x);
  tn_op_arg(build, mean);
  tn_op_arg(build, rstd);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  return tn_op_end(build);
}

/* normalize: x divided by its norm along an axis
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   p: the root of the sum of |x|^p; inf: the largest |x|; 0: how many are not 0; default 2
 *   axis: dimension of the vectors, -rank .. rank-1; default 1
 *   epsilon: least divisor; > 0; default 1e-12 */
static inline tn_val tn_normalize(tn_build *build, tn_val x, double p, int64_t axis, double epsilon) {
  tn_op_begin(build, "normalize");
  tn_op_arg(build, x);
  tn_op_set_float(build, "p", p);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_float(build, "epsilon", epsilon);
  return tn_op_end(build);
}

/* not: the opposite
 *   (x:bool) -> (y:bool) */
static inline tn_val tn_not(tn_build *build, tn_val x) {
  tn_op_begin(build, "not");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* one_hot: 1 at the index along a new last dimension, 0 elsewhere
 * An index outside of the classes has zeros only.
 *   (index:I) -> (y:any); I in i32 i64, u8 i8 as i32
 *   classes: size of the last dimension of the result; >= 0
 *   dtype: element type of the result; default i64 */
static inline tn_val tn_one_hot(tn_build *build, tn_val index, int64_t classes, int32_t dtype) {
  tn_op_begin(build, "one_hot");
  tn_op_arg(build, index);
  tn_op_set_int(build, "classes", classes);
  tn_op_set_int(build, "dtype", dtype);
  return tn_op_end(build);
}

/* or: either
 *   (x:bool, y:bool) -> (z:bool) */
static inline tn_val tn_or(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "or");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* pack: operands flattened one after the other, zeros in the gaps
 * Value i begins at element offsets[i] of the result, which has rank 1.
 *   (xs*:T) -> (y:T)
 *   offsets: where each operand begins, in elements, ascending
 *   count: elements of the result; >= 0
 *   region: the region of state whose layouts the operands have
 *   start: where the result begins in that region; >= 0; default 0 */
static inline tn_val tn_pack(tn_build *build, int64_t n_xs, const tn_val *xs,
                             int64_t n_offsets, const int64_t *offsets, int64_t count, const char *region,
                             int64_t start) {
  tn_op_begin(build, "pack");
  for (int64_t i = 0; i < n_xs; i++) tn_op_arg(build, xs[i]);
  tn_op_set_ints(build, "offsets", n_offsets, offsets);
  tn_op_set_int(build, "count", count);
  if (region != NULL) tn_op_set_text(build, "region", region);
  tn_op_set_int(build, "start", start);
  return tn_op_end(build);
}

/* pad: x with zeros around it and between its elements
 *   (x:T) -> (y:T)
 *   low: zeros in front of each dimension
 *   high: zeros behind each dimension
 *   inner: zeros between neighbours; none: 0; default [] */
static inline tn_val tn_pad(tn_build *build, tn_val x, int64_t n_low, const int64_t *low,
                            int64_t n_high, const int64_t *high, int64_t n_inner, const int64_t *inner) {
  tn_op_begin(build, "pad");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "low", n_low, low);
  tn_op_set_ints(build, "high", n_high, high);
  if (n_inner != 0 || inner != NULL) tn_op_set_ints(build, "inner", n_inner, inner);
  return tn_op_end(build);
}

/* pairwise_distance: p-norm of x - y along the last dimension
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64
 *   p: the root of the sum of |x|^p; inf: the largest |x|; 0: how many are not 0; default 2
 *   epsilon: added to every difference; default 1e-6
 *   keep: keep the dimension as 1; default no */
static inline tn_val tn_pairwise_distance(tn_build *build, tn_val x, tn_val y, double p, double epsilon,
                                          int32_t keep) {
  tn_op_begin(build, "pairwise_distance");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  tn_op_set_float(build, "p", p);
  tn_op_set_float(build, "epsilon", epsilon);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* pixel_shuffle: images with groups of channels spread over larger pixels
 *   (x:T) -> (y:T)
 *   factor: of the height and of the width; >= 1 */
static inline tn_val tn_pixel_shuffle(tn_build *build, tn_val x, int64_t factor) {
  tn_op_begin(build, "pixel_shuffle");
  tn_op_arg(build, x);
  tn_op_set_int(build, "factor", factor);
  return tn_op_end(build);
}

/* pixel_unshuffle: images with blocks of pixels collected in channels
 *   (x:T) -> (y:T)
 *   factor: of the height and of the width; >= 1 */
static inline tn_val tn_pixel_unshuffle(tn_build *build, tn_val x, int64_t factor) {
  tn_op_begin(build, "pixel_unshuffle");
  tn_op_arg(build, x);
  tn_op_set_int(build, "factor", factor);
  return tn_op_end(build);
}

/* pow: x to the power y
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_pow(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "pow");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* prelu: x, or slope * x where x is not positive; slope is a value, or one a channel that broadcasts
 *   (x:T, slope:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_prelu(tn_build *build, tn_val x, tn_val slope) {
  tn_op_begin(build, "prelu");
  tn_op_arg(build, x);
  tn_op_arg(build, slope);
  return tn_op_end(build);
}

/* prod: product; 1 over nothing
 *   (x:T) -> (y:any); T in i32 i64 f16 bf16 f32 f64, bool u8 i8 as i64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_prod(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes, int32_t keep) {
  tn_op_begin(build, "prod");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* quantile: element along an axis below which a share q of the elements lies, NaN if there is one
 * Hyndman and Fan, "Sample quantiles in statistical packages", 1996, type 7.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   q: share of the elements that are smaller; [0, 1]
 *   axis: dimension that is reduced, -rank .. rank-1; default -1
 *   keep: keep the dimension as 1; default no
 *   mode (0 linear, 1 lower, 2 higher, 3 midpoint, 4 nearest): value between two elements; default linear */
static inline tn_val tn_quantile(tn_build *build, tn_val x, double q, int64_t axis, int32_t keep,
                                 int32_t mode) {
  tn_op_begin(build, "quantile");
  tn_op_arg(build, x);
  tn_op_set_float(build, "q", q);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "keep", keep);
  tn_op_set_int(build, "mode", mode);
  return tn_op_end(build);
}

/* quotient: x / y toward zero; 0 where y is 0
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 */
static inline tn_val tn_quotient(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "quotient");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* rad2deg: radians as degrees
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_rad2deg(tn_build *build, tn_val x) {
  tn_op_begin(build, "rad2deg");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* random_normal: normally distributed numbers with mean a and deviation b
 * `iteration` is tn_build_counter(b, TN_ITERATION), `block` tn_build_counter(b, TN_BATCH_BLOCK), `stream`
 * tn_build_random_stream(b, use). tenon/attributes.h defines the bits of each element.
 *   (iteration:i64, block?:i64) -> (y:any)
 *   dims: dimensions
 *   stream: number of the random stream; default 0
 *   a: mean; default 0
 *   b: standard deviation; default 1
 *   dtype: element type; default f32 */
static inline tn_val tn_random_normal(tn_build *build, tn_val iteration, tn_val block, const tn_type *type,
                                      int64_t stream, double a, double b) {
  tn_op_begin(build, "random_normal");
  tn_op_arg(build, iteration);
  tn_op_arg(build, block);
  tn_op_set_ints(build, "dims", type->rank, type->dims);
  tn_op_set_int(build, "dtype", type->dtype);
  tn_op_set_int(build, "stream", stream);
  tn_op_set_float(build, "a", a);
  tn_op_set_float(build, "b", b);
  return tn_op_end(build);
}

/* random_uniform: numbers from [a, b)
 * `iteration` is tn_build_counter(b, TN_ITERATION), `block` tn_build_counter(b, TN_BATCH_BLOCK), `stream`
 * tn_build_random_stream(b, use). tenon/attributes.h defines the bits of each element.
 *   (iteration:i64, block?:i64) -> (y:any)
 *   dims: dimensions
 *   stream: number of the random stream; default 0
 *   a: lowest value; default 0
 *   b: bound above; default 1
 *   dtype: element type; default f32 */
static inline tn_val tn_random_uniform(tn_build *build, tn_val iteration, tn_val block, const tn_type *type,
                                       int64_t stream, double a, double b) {
  tn_op_begin(build, "random_uniform");
  tn_op_arg(build, iteration);
  tn_op_arg(build, block);
  tn_op_set_ints(build, "dims", type->rank, type->dims);
  tn_op_set_int(build, "dtype", type->dtype);
  tn_op_set_int(build, "stream", stream);
  tn_op_set_float(build, "a", a);
  tn_op_set_float(build, "b", b);
  return tn_op_end(build);
}

/* reciprocal: 1 / x
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_reciprocal(tn_build *build, tn_val x) {
  tn_op_begin(build, "reciprocal");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* recurrence: the steps of an LSTM, a GRU or a plain recurrent layer along time
 * x is (batch, steps, gates * units), w (gates * units, units), h and c the states before the first step,
 * which are zero unless given. Gates have PyTorch's order: i, f, g, o of lstm, r, z, n of gru. Of a
 * sequence only the first `length` steps count: y is zero behind them. last is the state behind the last
 * step, cell that of c, and stored what the gradient needs.
 *   (x:T, w:T, bias?:T, h?:T, c?:T, length?:i32) -> (y:T, last:T, cell:T, stored:T); T in f16 bf16 f32 f64
 *   cell (0 lstm, 1 gru, 2 tanh, 3 relu): what a step computes; default lstm
 *   reverse: from the last step to the first; default no */
static inline tn_val tn_recurrence(tn_build *build, tn_val x, tn_val w, tn_val bias, tn_val h, tn_val c,
                                   tn_val length, int32_t cell, int32_t reverse) {
  tn_op_begin(build, "recurrence");
  tn_op_arg(build, x);
  tn_op_arg(build, w);
  tn_op_arg(build, bias);
  tn_op_arg(build, h);
  tn_op_arg(build, c);
  tn_op_arg(build, length);
  tn_op_set_int(build, "cell", cell);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* recurrence_grad: gradient of recurrence
 * y and stored are those of recurrence; gradients of its results that are absent are zero.
 *   (w:T, h?:T, c?:T, length?:i32, y:T, stored:T, dy?:T, dlast?:T, dcell?:T) -> (dx:T, dw:T, dbias:T,
 *   dh:T, dc:T); T in f16 bf16 f32 f64
 *   cell (0 lstm, 1 gru, 2 tanh, 3 relu): what a step computes; default lstm
 *   reverse: from the last step to the first; default no */
static inline tn_val tn_recurrence_grad(tn_build *build, tn_val w, tn_val h, tn_val c, tn_val length,
                                        tn_val y, tn_val stored, tn_val dy, tn_val dlast, tn_val dcell,
                                        int32_t cell, int32_t reverse) {
  tn_op_begin(build, "recurrence_grad");
  tn_op_arg(build, w);
  tn_op_arg(build, h);
  tn_op_arg(build, c);
  tn_op_arg(build, length);
  tn_op_arg(build, y);
  tn_op_arg(build, stored);
  tn_op_arg(build, dy);
  tn_op_arg(build, dlast);
  tn_op_arg(build, dcell);
  tn_op_set_int(build, "cell", cell);
  tn_op_set_int(build, "reverse", reverse);
  return tn_op_end(build);
}

/* reduce_max: largest element; NaN if there is one
 *   (x:T) -> (y:T); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_reduce_max(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes,
                                   int32_t keep) {
  tn_op_begin(build, "reduce_max");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* reduce_mean: mean; NaN over nothing
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_reduce_mean(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes,
                                    int32_t keep) {
  tn_op_begin(build, "reduce_mean");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* reduce_min: smallest element; NaN if there is one
 *   (x:T) -> (y:T); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_reduce_min(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes,
                                   int32_t keep) {
  tn_op_begin(build, "reduce_min");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* reduce_scatter: sum, mean or extreme over ranks, of which each rank gets its part of dimension 0
 * Rank r gets the r-th of `ranks` equal parts. Dimension 0 is a multiple of `ranks`, which is
 * tn_build_ranks(b).
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   ranks: number of ranks of the run; >= 1; default 1
 *   reduction (0 sum, 1 min, 2 max, 3 mean): how the ranks' elements are combined; mean: of floats;
 *     default sum */
static inline tn_val tn_reduce_scatter(tn_build *build, tn_val x, int64_t ranks, int32_t reduction) {
  tn_op_begin(build, "reduce_scatter");
  tn_op_arg(build, x);
  tn_op_set_int(build, "ranks", ranks);
  tn_op_set_int(build, "reduction", reduction);
  return tn_op_end(build);
}

/* reduce_sum: sum; 0 over nothing
 *   (x:T) -> (y:any); T in i32 i64 f16 bf16 f32 f64, bool u8 i8 as i64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no */
static inline tn_val tn_reduce_sum(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes,
                                   int32_t keep) {
  tn_op_begin(build, "reduce_sum");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  return tn_op_end(build);
}

/* relu: max(x, 0)
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_relu(tn_build *build, tn_val x) {
  tn_op_begin(build, "relu");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* relu6: x between 0 and 6
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_relu6(tn_build *build, tn_val x) {
  tn_op_begin(build, "relu6");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* remainder: the rest of x / y rounded down, of the sign of y; 0 for integers where y is 0
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_remainder(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "remainder");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* reorder: x in another layout
 * The host chooses the layout.
 *   (x:T) -> (y:T) */
static inline tn_val tn_reorder(tn_build *build, tn_val x) {
  tn_op_begin(build, "reorder");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* repeat_interleave: x with each element along an axis repeated
 *   (x:T) -> (y:T)
 *   repeats: of each element; >= 0
 *   axis: dimension to repeat, -rank .. rank-1; default 0 */
static inline tn_val tn_repeat_interleave(tn_build *build, tn_val x, int64_t repeats, int64_t axis) {
  tn_op_begin(build, "repeat_interleave");
  tn_op_arg(build, x);
  tn_op_set_int(build, "repeats", repeats);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* reshape: the elements in the same order under other dimensions
 *   (x:T) -> (y:T)
 *   dims: dimensions of the result; one may be -1: the rest */
static inline tn_val tn_reshape(tn_build *build, tn_val x, int64_t n_dims, const int64_t *dims) {
  tn_op_begin(build, "reshape");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "dims", n_dims, dims);
  return tn_op_end(build);
}

/* rms_norm: x / sqrt(mean(x^2) + epsilon) * weight over trailing dimensions
 * The default of epsilon is PyTorch's, the spacing of f32 at 1. B. Zhang, R. Sennrich, "Root mean square
 * layer normalization", NeurIPS 2019.
 *   (x:T, weight?:A) -> (y:T); T in f16 bf16 f32 f64; A in f32 f64
 *   epsilon: added to the mean square; >= 0; default 1.1920929e-07
 *   trailing: how many trailing dimensions are normalized; >= 1; default 1 */
static inline tn_val tn_rms_norm(tn_build *build, tn_val x, tn_val weight, double epsilon, int64_t trailing) {
  tn_op_begin(build, "rms_norm");
  tn_op_arg(build, x);
  tn_op_arg(build, weight);
  tn_op_set_float(build, "epsilon", epsilon);
  tn_op_set_int(build, "trailing", trailing);
  return tn_op_end(build);
}

/* roll: x with elements moved along axes, the last to the front
 *   (x:T) -> (y:T)
 *   shifts: places that the elements of each axis move up
 *   axes: dimensions to roll; none: x as a vector; default [] */
static inline tn_val tn_roll(tn_build *build, tn_val x, int64_t n_shifts, const int64_t *shifts,
                             int64_t n_axes, const int64_t *axes) {
  tn_op_begin(build, "roll");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "shifts", n_shifts, shifts);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  return tn_op_end(build);
}

/* rotary: turns each pair of elements of a head by an angle that grows with the position
 * The first token has the position `start`, 0 where it is absent. J. Su and others, "RoFormer: enhanced
 * transformer with rotary position embedding", 2021.
 *   (x:T, start?:i64) -> (y:T); T in f16 bf16 f32 f64
 *   heads: of x: (batch, tokens, heads * width); >= 1
 *   base: pair i turns by position * base^(-2 i / width); > 0; default 10000
 *   interleaved: pairs are neighbours; else elements i and i + width / 2; default no
 *   inverse: turns back; default no */
static inline tn_val tn_rotary(tn_build *build, tn_val x, tn_val start, int64_t heads, double base,
                               int32_t interleaved, int32_t inverse) {
  tn_op_begin(build, "rotary");
  tn_op_arg(build, x);
  tn_op_arg(build, start);
  tn_op_set_int(build, "heads", heads);
  tn_op_set_float(build, "base", base);
  tn_op_set_int(build, "interleaved", interleaved);
  tn_op_set_int(build, "inverse", inverse);
  return tn_op_end(build);
}

/* round: nearest integer, ties to even
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_round(tn_build *build, tn_val x) {
  tn_op_begin(build, "round");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* rsqrt: 1 / sqrt(x)
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_rsqrt(tn_build *build, tn_val x) {
  tn_op_begin(build, "rsqrt");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* scatter: x with updates at their indices along an axis
 * An index of the rank of x and of the dims of the updates: y[i, index[i, j, k], k] += updates[i, j, k]
 * for axis 1 and mode add. A vector: y[i, index[j], k] += updates[i, j, k]. Updates of one element are
 * applied in their order along the axis: the bits are those of every run. f16 and bf16 are added up in
 * f32.
 *   (x:T, index:I, updates:T) -> (y:T); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32; I in i32 i64, u8 i8
 *   as i32
 *   axis: dimension that is indexed, -rank .. rank-1; default 0
 *   mode (0 add, 1 max, 2 min, 3 set): what becomes of an update and the element at its index; set: the
 *     last update of an element stays; default add */
static inline tn_val tn_scatter(tn_build *build, tn_val x, tn_val index, tn_val updates, int64_t axis,
                                int32_t mode) {
  tn_op_begin(build, "scatter");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_arg(build, updates);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "mode", mode);
  return tn_op_end(build);
}

/* select: one element along an axis, which is dropped
 *   (x:T) -> (y:T)
 *   axis: dimension to drop, -rank .. rank-1
 *   index: of the element, from the end where negative */
static inline tn_val tn_select(tn_build *build, tn_val x, int64_t axis, int64_t index) {
  tn_op_begin(build, "select");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "index", index);
  return tn_op_end(build);
}

/* selu: scaled elu, of mean 0 and variance 1
 * G. Klambauer et al., "Self-normalizing neural networks", 2017.
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_selu(tn_build *build, tn_val x) {
  tn_op_begin(build, "selu");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* shift_left: x times 2 to the power y; 0 where y is not less than the number of bits, or negative
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 */
static inline tn_val tn_shift_left(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "shift_left");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* shift_right: x divided by 2 to the power y, rounded down; as by all bits where y is negative
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 */
static inline tn_val tn_shift_right(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "shift_right");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* sigmoid: 1 / (1 + exp(-x))
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_sigmoid(tn_build *build, tn_val x) {
  tn_op_begin(build, "sigmoid");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* sign: -1, 0 or 1; NaN stays NaN
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_sign(tn_build *build, tn_val x) {
  tn_op_begin(build, "sign");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* sign_bit: whether x has the sign bit, as -0 does
 *   (x:T) -> (y:bool); T in f16 bf16 f32 f64 */
static inline tn_val tn_sign_bit(tn_build *build, tn_val x) {
  tn_op_begin(build, "sign_bit");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* silu: x sigmoid(x)
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_silu(tn_build *build, tn_val x) {
  tn_op_begin(build, "silu");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* sin: sine of radians
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_sin(tn_build *build, tn_val x) {
  tn_op_begin(build, "sin");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* sinc: sin(pi x) / (pi x); 1 where x is 0
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_sinc(tn_build *build, tn_val x) {
  tn_op_begin(build, "sinc");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* sinh: hyperbolic sine
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_sinh(tn_build *build, tn_val x) {
  tn_op_begin(build, "sinh");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* slice: a part of x: start, start + step ... below stop in each dimension
 *   (x:T) -> (y:T)
 *   starts: first index in each dimension
 *   stops: index behind the last in each dimension
 *   steps: distance of those taken; none: all 1; default [] */
static inline tn_val tn_slice(tn_build *build, tn_val x, int64_t n_starts, const int64_t *starts,
                              int64_t n_stops, const int64_t *stops, int64_t n_steps, const int64_t *steps) {
  tn_op_begin(build, "slice");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "starts", n_starts, starts);
  tn_op_set_ints(build, "stops", n_stops, stops);
  if (n_steps != 0 || steps != NULL) tn_op_set_ints(build, "steps", n_steps, steps);
  return tn_op_end(build);
}

/* softmax: exp(x) / sum(exp(x)) along one dimension
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axis: dimension of the classes, -rank .. rank-1; default -1 */
static inline tn_val tn_softmax(tn_build *build, tn_val x, int64_t axis) {
  tn_op_begin(build, "softmax");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* softplus: log(1 + exp(beta x)) / beta; x where beta x is above the threshold
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   beta: sharpness; default 1
 *   threshold: from which beta * x on it is x; default 20 */
static inline tn_val tn_softplus(tn_build *build, tn_val x, double beta, double threshold) {
  tn_op_begin(build, "softplus");
  tn_op_arg(build, x);
  tn_op_set_float(build, "beta", beta);
  tn_op_set_float(build, "threshold", threshold);
  return tn_op_end(build);
}

/* softshrink: x, moved toward 0 by lambda
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   lambda: distance; >= 0; default 0.5 */
static inline tn_val tn_softshrink(tn_build *build, tn_val x, double lambda) {
  tn_op_begin(build, "softshrink");
  tn_op_arg(build, x);
  tn_op_set_float(build, "lambda", lambda);
  return tn_op_end(build);
}

/* softsign: x / (1 + |x|)
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_softsign(tn_build *build, tn_val x) {
  tn_op_begin(build, "softsign");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* sort: the elements along an axis in ascending order, and where they were
 * y = gather(x, index). Equal elements keep their order, also in descending order. NaN is larger than
 * every number.
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   axis: dimension to sort along, -rank .. rank-1; default -1
 *   descending: the largest element first; default no */
static inline tn_val tn_sort(tn_build *build, tn_val x, int64_t axis, int32_t descending) {
  tn_op_begin(build, "sort");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "descending", descending);
  return tn_op_end(build);
}

/* spread: one of a few values for each range of elements
 * y[i] = values[index[r]] for the last r with starts[r] <= i.
 *   (values:T) -> (y:T)
 *   starts: where each range begins; the first is 0
 *   index: which value each range has
 *   count: elements of the result; >= 0 */
static inline tn_val tn_spread(tn_build *build, tn_val values, int64_t n_starts, const int64_t *starts,
                               int64_t n_index, const int64_t *index, int64_t count) {
  tn_op_begin(build, "spread");
  tn_op_arg(build, values);
  tn_op_set_ints(build, "starts", n_starts, starts);
  tn_op_set_ints(build, "index", n_index, index);
  tn_op_set_int(build, "count", count);
  return tn_op_end(build);
}

/* sqrt: square root
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_sqrt(tn_build *build, tn_val x) {
  tn_op_begin(build, "sqrt");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* square: x^2
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_square(tn_build *build, tn_val x) {
  tn_op_begin(build, "square");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* squeeze: x without dimensions of size 1
 *   (x:T) -> (y:T)
 *   axes: dimensions to drop where they are 1; none: all; default [] */
static inline tn_val tn_squeeze(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes) {
  tn_op_begin(build, "squeeze");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  return tn_op_end(build);
}

/* stack: operands joined along a new dimension
 *   (xs*:T) -> (y:T)
 *   axis: place of the new dimension, -rank-1 .. rank; default 0 */
static inline tn_val tn_stack(tn_build *build, int64_t n_xs, const tn_val *xs, int64_t axis) {
  tn_op_begin(build, "stack");
  for (int64_t i = 0; i < n_xs; i++) tn_op_arg(build, xs[i]);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* std: standard deviation, of a sample
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no
 *   correction: subtracted from the number of elements; default 1 */
static inline tn_val tn_std(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes, int32_t keep,
                            double correction) {
  tn_op_begin(build, "std");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  tn_op_set_float(build, "correction", correction);
  return tn_op_end(build);
}

/* sub: x - y; integers wrap
 *   (x:T, y:T) -> (z:T); T in u8 i8 i32 i64 f16 bf16 f32 f64 */
static inline tn_val tn_sub(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "sub");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* swapaxes: x with two dimensions exchanged
 *   (x:T) -> (y:T)
 *   axis0: one dimension, -rank .. rank-1
 *   axis1: the other one */
static inline tn_val tn_swapaxes(tn_build *build, tn_val x, int64_t axis0, int64_t axis1) {
  tn_op_begin(build, "swapaxes");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis0", axis0);
  tn_op_set_int(build, "axis1", axis1);
  return tn_op_end(build);
}

/* take: elements of x, flattened, by their indices
 *   (x:T, index:I) -> (y:T); I in i32 i64, u8 i8 as i32 */
static inline tn_val tn_take(tn_build *build, tn_val x, tn_val index) {
  tn_op_begin(build, "take");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  return tn_op_end(build);
}

/* take_along_dim: elements of x by their indices along an axis, for operands that broadcast
 *   (x:T, index:I) -> (y:T); I in i32 i64, u8 i8 as i32
 *   axis: dimension that is indexed, -rank .. rank-1; default 0 */
static inline tn_val tn_take_along_dim(tn_build *build, tn_val x, tn_val index, int64_t axis) {
  tn_op_begin(build, "take_along_dim");
  tn_op_arg(build, x);
  tn_op_arg(build, index);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* tan: tangent of radians
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_tan(tn_build *build, tn_val x) {
  tn_op_begin(build, "tan");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* tanh: hyperbolic tangent
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_tanh(tn_build *build, tn_val x) {
  tn_op_begin(build, "tanh");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* tanhshrink: x - tanh(x)
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_tanhshrink(tn_build *build, tn_val x) {
  tn_op_begin(build, "tanhshrink");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* threshold: x, or value where x is not above the threshold
 *   (x:T) -> (y:T); T in u8 i8 i32 i64 f16 bf16 f32 f64
 *   threshold: which x has to be above
 *   value: in its place */
static inline tn_val tn_threshold(tn_build *build, tn_val x, double threshold, double value) {
  tn_op_begin(build, "threshold");
  tn_op_arg(build, x);
  tn_op_set_float(build, "threshold", threshold);
  tn_op_set_float(build, "value", value);
  return tn_op_end(build);
}

/* tile: x repeated along its dimensions
 *   (x:T) -> (y:T)
 *   repeats: of each dimension, aligned at the last */
static inline tn_val tn_tile(tn_build *build, tn_val x, int64_t n_repeats, const int64_t *repeats) {
  tn_op_begin(build, "tile");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "repeats", n_repeats, repeats);
  return tn_op_end(build);
}

/* topk: the k largest elements along an axis, and where they were
 * The first k elements of `sort`, in that order.
 *   (x:T) -> (y:T, index:i32); T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32
 *   k: how many elements; >= 0
 *   axis: dimension to sort along, -rank .. rank-1; default -1
 *   largest: the largest elements; no: the smallest; default yes */
static inline tn_val tn_topk(tn_build *build, tn_val x, int64_t k, int64_t axis, int32_t largest) {
  tn_op_begin(build, "topk");
  tn_op_arg(build, x);
  tn_op_set_int(build, "k", k);
  tn_op_set_int(build, "axis", axis);
  tn_op_set_int(build, "largest", largest);
  return tn_op_end(build);
}

/* trace: sum of the main diagonal of the matrices of the last two dimensions
 *   (x:T) -> (y:any); T in i32 i64 f16 bf16 f32 f64, bool u8 i8 as i64 */
static inline tn_val tn_trace(tn_build *build, tn_val x) {
  tn_op_begin(build, "trace");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* transpose: x with its dimensions in another order
 *   (x:T) -> (y:T)
 *   order: result dimension i is dimension order[i] of x */
static inline tn_val tn_transpose(tn_build *build, tn_val x, int64_t n_order, const int64_t *order) {
  tn_op_begin(build, "transpose");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "order", n_order, order);
  return tn_op_end(build);
}

/* triangular_mask: true where column <= row + diagonal
 *   () -> (y:bool)
 *   rows: rows; >= 0
 *   columns: columns; >= 0
 *   diagonal: how far the true part reaches right of the diagonal; default 0 */
static inline tn_val tn_triangular_mask(tn_build *build, int64_t rows, int64_t columns, int64_t diagonal) {
  tn_op_begin(build, "triangular_mask");
  tn_op_set_int(build, "rows", rows);
  tn_op_set_int(build, "columns", columns);
  tn_op_set_int(build, "diagonal", diagonal);
  return tn_op_end(build);
}

/* trigamma: derivative of digamma
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_trigamma(tn_build *build, tn_val x) {
  tn_op_begin(build, "trigamma");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* tril: x on and below a diagonal of its matrices, 0 above
 *   (x:T) -> (y:T)
 *   diagonal: the diagonal, counted to the right; below the main one where negative; default 0 */
static inline tn_val tn_tril(tn_build *build, tn_val x, int64_t diagonal) {
  tn_op_begin(build, "tril");
  tn_op_arg(build, x);
  tn_op_set_int(build, "diagonal", diagonal);
  return tn_op_end(build);
}

/* tril_flatten: the elements of matrices on and below a diagonal as vectors, row by row
 *   (x:T) -> (y:T)
 *   diagonal: the diagonal, counted to the right; below the main one where negative; default 0 */
static inline tn_val tn_tril_flatten(tn_build *build, tn_val x, int64_t diagonal) {
  tn_op_begin(build, "tril_flatten");
  tn_op_arg(build, x);
  tn_op_set_int(build, "diagonal", diagonal);
  return tn_op_end(build);
}

/* triu: x on and above a diagonal of its matrices, 0 below
 *   (x:T) -> (y:T)
 *   diagonal: the diagonal, counted to the right; below the main one where negative; default 0 */
static inline tn_val tn_triu(tn_build *build, tn_val x, int64_t diagonal) {
  tn_op_begin(build, "triu");
  tn_op_arg(build, x);
  tn_op_set_int(build, "diagonal", diagonal);
  return tn_op_end(build);
}

/* trunc: x without its fraction
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_trunc(tn_build *build, tn_val x) {
  tn_op_begin(build, "trunc");
  tn_op_arg(build, x);
  return tn_op_end(build);
}

/* unfold: the patches of images as columns: (N, C, H, W) to (N, C * kernel, patches)
 * A list of one entry stands for both dimensions.
 *   (x:T) -> (y:T)
 *   kernel: height and width of a patch
 *   stride: distance of patches; none: 1; default []
 *   padding: zeros around the image; none: 0; default []
 *   dilation: distance of the pixels of a patch; none: 1; default [] */
static inline tn_val tn_unfold(tn_build *build, tn_val x, int64_t n_kernel, const int64_t *kernel,
                               int64_t n_stride, const int64_t *stride,
                               int64_t n_padding, const int64_t *padding,
                               int64_t n_dilation, const int64_t *dilation) {
  tn_op_begin(build, "unfold");
  tn_op_arg(build, x);
  tn_op_set_ints(build, "kernel", n_kernel, kernel);
  if (n_stride != 0 || stride != NULL) tn_op_set_ints(build, "stride", n_stride, stride);
  if (n_padding != 0 || padding != NULL) tn_op_set_ints(build, "padding", n_padding, padding);
  if (n_dilation != 0 || dilation != NULL) tn_op_set_ints(build, "dilation", n_dilation, dilation);
  return tn_op_end(build);
}

/* unsqueeze: x with a new dimension of size 1
 *   (x:T) -> (y:T)
 *   axis: place of the new dimension, -rank-1 .. rank */
static inline tn_val tn_unsqueeze(tn_build *build, tn_val x, int64_t axis) {
  tn_op_begin(build, "unsqueeze");
  tn_op_arg(build, x);
  tn_op_set_int(build, "axis", axis);
  return tn_op_end(build);
}

/* var: variance, of a sample
 *   (x:T) -> (y:T); T in f16 bf16 f32 f64
 *   axes: dimensions to reduce, -rank .. rank-1; none: all; default []
 *   keep: keep reduced dimensions as 1; default no
 *   correction: subtracted from the number of elements; default 1 */
static inline tn_val tn_var(tn_build *build, tn_val x, int64_t n_axes, const int64_t *axes, int32_t keep,
                            double correction) {
  tn_op_begin(build, "var");
  tn_op_arg(build, x);
  if (n_axes != 0 || axes != NULL) tn_op_set_ints(build, "axes", n_axes, axes);
  tn_op_set_int(build, "keep", keep);
  tn_op_set_float(build, "correction", correction);
  return tn_op_end(build);
}

/* where: x where c holds, else y
 *   (c:bool, x:T, y:T) -> (z:T) */
static inline tn_val tn_where(tn_build *build, tn_val c, tn_val x, tn_val y) {
  tn_op_begin(build, "where");
  tn_op_arg(build, c);
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

/* xlogy: x log(y); 0 where x is 0
 *   (x:T, y:T) -> (z:T); T in f16 bf16 f32 f64 */
static inline tn_val tn_xlogy(tn_build *build, tn_val x, tn_val y) {
  tn_op_begin(build, "xlogy");
  tn_op_arg(build, x);
  tn_op_arg(build, y);
  return tn_op_end(build);
}

TN_END_C
#endif
