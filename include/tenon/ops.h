/* tenon/ops.h: Tenon's own ops as functions, for everything that builds graph (build.h). The full
 * list with schemas, attributes and documentation: core/ops, or `tenon inspect`.
 *
 *   pointwise, with the broadcasting of NumPy
 *     neg abs sign exp log sqrt rsqrt reciprocal tanh sigmoid erf sin cos floor   (x:T) -> (y:T)
 *     add sub mul div maximum minimum pow                                      (x:T, y:T) -> (z:T)
 *     eq ne lt le gt ge                                                     (x:T, y:T) -> (z:bool)
 *     and or   (x:bool, y:bool) -> (z:bool);  not (x:bool) -> (y:bool);  is_finite (x:T) -> (y:bool)
 *     where (c:bool, x:T, y:T) -> (z:T);  cast (x:T; to) -> (y:any);  affine (x:T; scale, shift) -> (y:T)
 *     full (; dims, value, dtype) -> (y:any);  iota (; dims, axis, dtype) -> (y:any)
 *     broadcast (x:T; dims) -> (y:T);  spread (values:T; starts, index, count) -> (y:T)
 *     random_uniform random_normal (iteration:i64, block?:i64; dims, stream, a, b, dtype) -> (y:any)
 *     relu silu (x:T), leaky_relu (x:T; slope), gelu (x:T; approximate)
 *     gelu_grad (dy:T, x:T; approximate) -> (dx:T)
 *     dropout (x:T, iteration:i64, block?:i64; p, stream)
 *     triangular_mask (; rows, columns, diagonal) -> (y:bool)
 *   reductions
 *     reduce_sum reduce_mean reduce_max reduce_min (x:T; axes, keep) -> (y:T)
 *     argmax (x:T; axis) -> (y:i32)
 *     moments (x:T; axes) -> (sum:any, squares:any)   in f32, f64 for f64
 *     norm_grad_sums (dy:T, x:T, mean:A, rstd:A; axes) -> (sum:A, dot:A)   sum dy, sum dy (x - mean) rstd
 *     all_finite (x:T) -> (y:bool)
 *   products
 *     matmul (a:T, b:T, bias?:T; transpose_a, transpose_b) -> (y:T)   batch dimensions broadcast
 *     conv2d (x:T, w:T, bias?:T; stride, padding, dilation, groups) -> (y:T)   (N,C,H,W), (O,C/g,h,w)
 *     conv2d_grad_input (dy:T, w:T; dims, ...) -> (dx:T)
 *     conv2d_grad_weight (x:T, dy:T; dims, ...) -> (dw:T)
 *   pooling
 *     max_pool2d (x:T; kernel, stride, padding, ceil) -> (y:T, index:i32)   index: in the H*W plane
 *     max_pool2d_grad (dy:T, index:i32; dims, ...) -> (dx:T)
 *     avg_pool2d (x:T; ..., include_pad) -> (y:T);  avg_pool2d_grad (dy:T; dims, ...) -> (dx:T)
 *     global_avg_pool (x:T) -> (y:T)   (N,C,H,W) -> (N,C)
 *   normalization and loss
 *     batch_norm (x:T, weight?:A, bias?:A; epsilon, ranks) -> (y:T, mean:A, variance:A)   biased variance
 *     batch_norm_apply (x:T, mean:A, variance:A, weight?:A, bias?:A; epsilon) -> (y:T)
 *     layer_norm (x:T, weight?:A, bias?:A; epsilon, trailing) -> (y:T, mean:A, rstd:A)
 *     layer_norm_grad (dy:T, x:T, mean:A, rstd:A, weight?:A; trailing) -> (dx:T, dweight:A, dbias:A)
 *     softmax log_softmax (x:T; axis) -> (y:T)
 *     cross_entropy (logits:T, target:I; axis, ignore, smoothing) -> (loss:any, lse:any)
 *     attention (q:T, k:T, v:T; causal, scale, heads) -> (y:T, lse:any)   (B, heads, tokens, width), or
 *                                                     (B, tokens, heads * width) where heads is given
 *     attention_grad (q:T, k:T, v:T, y:T, lse:A, dy:T; causal, scale, heads) -> (dq:T, dk:T, dv:T)
 *   index and movement
 *     embedding (ids:I, table:T) -> (y:T);  embedding_grad (ids:I, dy:T; rows) -> (dtable:T)
 *     reshape (x; dims)  transpose (x; order)  slice (x; starts, stops, steps)  pad (x; low, high, inner)
 *     concat (xs*; axis)  copy (x)  reorder (x)  pack (xs*; offsets, count)
 *   over ranks
 *     all_reduce (x:T; reduction) -> (y:T)   sum, min or max
 *   updates
 *     sgd_update (param:T, grad:T, buffer?:T, lr:T, weight_decay:T, updates:i64;
 *                 momentum, dampening, nesterov) -> (param:T, buffer:T)
 *     adamw_update (param:T, grad:T, m:T, v:T, lr:T, weight_decay:T, updates:i64; beta1, beta2, epsilon)
 *       -> (param:T, m:T, v:T) */
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include "tenon/build.h"

TN_BEGIN_C

/* Ops without attributes. */
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

static inline tn_val tn_neg(tn_build *b, tn_val x) { return tn_op1(b, "neg", x); }
static inline tn_val tn_exp(tn_build *b, tn_val x) { return tn_op1(b, "exp", x); }
static inline tn_val tn_log(tn_build *b, tn_val x) { return tn_op1(b, "log", x); }
static inline tn_val tn_sqrt(tn_build *b, tn_val x) { return tn_op1(b, "sqrt", x); }
static inline tn_val tn_rsqrt(tn_build *b, tn_val x) { return tn_op1(b, "rsqrt", x); }
static inline tn_val tn_tanh(tn_build *b, tn_val x) { return tn_op1(b, "tanh", x); }
static inline tn_val tn_sigmoid(tn_build *b, tn_val x) { return tn_op1(b, "sigmoid", x); }
static inline tn_val tn_add(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "add", x, y); }
static inline tn_val tn_sub(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "sub", x, y); }
static inline tn_val tn_mul(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "mul", x, y); }
static inline tn_val tn_div(tn_build *b, tn_val x, tn_val y) { return tn_op2(b, "div", x, y); }
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
/* x in another dtype; x itself if it has it already. */
static inline tn_val tn_cast(tn_build *b, tn_val x, int32_t dtype) {
  if (tn_val_type(b, x)->dtype == dtype) return x;
  tn_op_begin(b, "cast");
  tn_op_arg(b, x);
  tn_op_set_text(b, "to", tn_dtype_name(dtype));
  return tn_op_end(b);
}
/* A tensor of one value. */
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
/* op is reduce_sum, reduce_mean, reduce_max or reduce_min; n = 0 reduces all axes. */
static inline tn_val tn_reduce(tn_build *b, const char *op, tn_val x, int64_t n, const int64_t *axes,
                               int32_t keep) {
  tn_op_begin(b, op);
  tn_op_arg(b, x);
  tn_op_set_ints(b, "axes", n, axes);
  tn_op_set_int(b, "keep", keep);
  return tn_op_end(b);
}
/* bias may be 0 */
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
static inline tn_val tn_reshape(tn_build *b, tn_val x, int64_t n, const int64_t *dims) {
  tn_op_begin(b, "reshape");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "dims", n, dims);
  return tn_op_end(b);
}
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
/* One part of x along an axis: start .. stop - 1. */
static inline tn_val tn_slice_axis(tn_build *b, tn_val x, int32_t axis, int64_t start, int64_t stop) {
  const tn_type *t = tn_val_type(b, x);
  int64_t starts[TN_MAX_RANK], stops[TN_MAX_RANK];
  for (int32_t i = 0; i < t->rank; i++) {
    starts[i] = i == axis ? start : 0;
    stops[i] = i == axis ? stop : t->dims[i];
  }
  int32_t rank = t->rank;
  tn_op_begin(b, "slice");
  tn_op_arg(b, x);
  tn_op_set_ints(b, "starts", rank, starts);
  tn_op_set_ints(b, "stops", rank, stops);
  return tn_op_end(b);
}
/* Sums x down to the dims of `like`: the transpose of broadcasting, for gradients. */
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
