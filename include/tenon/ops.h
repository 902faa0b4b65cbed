/* tenon/ops.h: Tenon's own ops as functions (op_functions.h, written from their descriptors), and a few that
 * are composed of them, for code that builds a graph (build.h): layers, gradients, decompositions,
 * optimizers, models in C. `tenon inspect OP` and docs/reference/ops.md show the same.
 *
 * In schemas T is one float or integer type for the whole op, A is f32, or f64 where T is f64, I is i32 or
 * i64. Axes count from 0, or from the last dimension with negative numbers. Pointwise ops broadcast their
 * operands as NumPy does. Images are (N, C, H, W); lists such as stride and padding are {height, width}. */
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include "tenon/attributes.h"
#include "tenon/op_functions.h"

TN_BEGIN_C

/* An op of one, two or three operands without options, by name. */
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

/* x in this dtype: x itself if it has that one, else tn_cast. */
static inline tn_val tn_to_dtype(tn_build *b, tn_val x, int32_t dtype) {
  return tn_val_type(b, x)->dtype == dtype ? x : tn_cast(b, x, dtype);
}

/* A value of rank 0. */
static inline tn_val tn_scalar(tn_build *b, int32_t dtype, double value) {
  tn_type t = {dtype, 0, {0, 0, 0, 0, 0, 0, 0, 0}};
  return tn_full(b, &t, value);
}

/* One part of x along an axis from 0 on: indices start .. stop - 1. */
static inline tn_val tn_slice_axis(tn_build *b, tn_val x, int32_t axis, int64_t start, int64_t stop) {
  const tn_type *t = tn_val_type(b, x);
  int64_t starts[TN_MAX_RANK], stops[TN_MAX_RANK];
  for (int32_t i = 0; i < t->rank; i++) {
    starts[i] = i == axis ? start : 0;
    stops[i] = i == axis ? stop : t->dims[i];
  }
  return tn_slice(b, x, t->rank, starts, t->rank, stops, 0, NULL);
}

/* Sums x down to the dims of `like`: the gradient of broadcasting. */
static inline tn_val tn_sum_to(tn_build *b, tn_val x, const tn_type *like) {
  const tn_type *t = tn_val_type(b, x);
  int64_t axes[TN_MAX_RANK], n = 0;
  int32_t lead = t->rank - like->rank;
  if (x == 0 || tn_type_same_dims(t, like)) return x;
  for (int32_t i = 0; i < t->rank; i++)
    if (i < lead || (like->dims[i - lead] == 1 && t->dims[i] != 1)) axes[n++] = i;
  if (n > 0) x = tn_reduce_sum(b, x, n, axes, 1);
  return lead > 0 ? tn_reshape(b, x, like->rank, like->dims) : x;
}

TN_END_C
#endif
