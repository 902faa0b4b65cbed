/* core/ops/common.h: private to core/ops: checks, axes, types and emission shared by the families of ops. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "core/ops/ops.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

/* Ends of schemas: the types of letter T. */
#define TN_OPS_FLOATS  "; T in f16 bf16 f32 f64"
#define TN_OPS_NUMBERS "; T in u8 i8 i32 i64 f16 bf16 f32 f64"
/* Bytes by the kernels of another type. Their sums and products are i64, as PyTorch's, where the result is of
 * type any. */
#define TN_OPS_WIDENED  "; T in i32 i64 f16 bf16 f32 f64, u8 i8 as i32"
#define TN_OPS_SUMS     "; T in i32 i64 f16 bf16 f32 f64, bool u8 i8 as i64"
#define TN_OPS_MAXIMA   "; T in f16 bf16 f32 f64, u8 i8 as f32"
#define TN_OPS_PRODUCTS "; T in f16 bf16 f32 f64, u8 i8 as f64"
#define TN_OPS_INDEX    "; I in i32 i64, u8 i8 as i32"

/* The option `math` of products. */
#define TN_OPS_MATH(S) TN_OPT(S, math, TN_OPT_ENUM, "full", "full|tf32", "may round operands of f32 to TF32")

/* A type in a message, "f32[8, 3]". Use it as tn_ops_text(type).v inside a call. */
typedef struct tn_ops_message {
  char v[192];
} tn_ops_message;
tn_ops_message tn_ops_text(const tn_type *type);

/* The dtype A of sums over T: f64 for f64, else f32. */
static inline int32_t tn_ops_accumulator(int32_t dtype) { return dtype == TN_F64 ? TN_F64 : TN_F32; }

/* ---- checking, for infer, and for decompositions from which types are inferred ---- */

/* Maps -rank .. rank-1 to 0 .. rank-1. */
tn_status tn_ops_check_axis(const void *handle, int64_t axis, int32_t rank, int32_t *at);
/* Marks the dimensions in `axes`; an empty list marks all. */
tn_status tn_ops_check_axes(const void *handle, const tn_ints *axes, int32_t rank, bool *reduced);
/* The axis of operand 0. */
tn_status tn_ops_axis_of_x(tn_build *b, int64_t axis, int32_t *at);
/* Sets the dims of a type: at most TN_MAX_RANK, each >= 0. */
tn_status tn_ops_check_dims(tn_infer *n, const tn_ints *dims, tn_type *type);
/* A list must have `count` entries, each at least `least`. */
tn_status tn_ops_check_list(tn_infer *n, const char *option, const tn_ints *list, int64_t count,
                            int64_t least);
tn_status tn_ops_check_rank(tn_infer *n, const char *operand, const tn_type *type, int32_t rank,
                            const char *dims);
/* An operand must have these dims. */
tn_status tn_ops_check_dims_of(tn_infer *n, const char *operand, const tn_type *type,
                               const tn_type *expected);
/* An operand that is present must have this type: these dims, and the dtype of sums over operand 0. */
tn_status tn_ops_check_operand(tn_infer *n, const char *name, const tn_type *operand,
                               const tn_type *expected);
/* Each channel of (N, C, spatial...) must have few enough elements for an i32 index. */
tn_status tn_ops_check_channel(tn_infer *n, const tn_type *x);
/* The numbers of elements and bytes of the result must fit in int64. */
tn_status tn_ops_check_count(tn_infer *n, const tn_type *type);

/* The number of spatial dimensions, which the op's name has: 2 for "conv2d_grad_input". */
static inline int32_t tn_ops_spatial(const tn_infer *n) { return strpbrk(n->node.op, "123")[0] - '0'; }

/* Their names, "height", of an op over `rank` of them, and the dimensions of a batch of images, for messages.
 */
const char *tn_ops_spatial_name(int32_t rank, int32_t i);
const char *tn_ops_image_dims(int32_t rank);

/* ---- attributes after the checks, for decompositions and gradients ---- */

static inline int32_t tn_ops_axis(int64_t axis, int32_t rank) {
  return (int32_t)(axis < 0 ? axis + rank : axis);
}
void tn_ops_axes(const tn_ints *axes, int32_t rank, bool *reduced);
/* Writes the indices of the marked dimensions; returns their number. */
int64_t tn_ops_marked(const bool *marked, int32_t rank, int64_t *axes);
/* The type with marked dimensions reduced to 1 (keep) or removed. */
tn_type tn_ops_reduced(const tn_type *type, const bool *reduced, bool keep);
/* The number of elements that are reduced to one. */
int64_t tn_ops_reduced_count(const tn_type *type, const bool *reduced);

/* ---- emitting ---- */

static inline tn_type tn_ops_type(tn_build *b, tn_val v) { return *tn_val_type(b, v); }
/* A scalar in the dtype of `like`. */
static inline tn_val tn_ops_number(tn_build *b, tn_val like, double v) {
  return tn_scalar(b, tn_val_type(b, like)->dtype, v);
}
static inline tn_val tn_ops_zero(tn_build *b, tn_val like) { return tn_ops_number(b, like, 0); }
/* v cast to the dtype of sums. */
static inline tn_val tn_ops_wide(tn_build *b, tn_val v) {
  return tn_to_dtype(b, v, tn_ops_accumulator(tn_val_type(b, v)->dtype));
}
/* v with the marked dimensions as 1, so that it broadcasts against `type`. 0 stays 0. */
tn_val tn_ops_keep(tn_build *b, tn_val v, const tn_type *type, const bool *reduced);
/* Reduces by op (reduce_sum, ...) over the marked dimensions, which become 1. */
tn_val tn_ops_reduce(tn_build *b, const char *op, tn_val v, const bool *reduced);
/* A [C] vector as (1, C, 1, ...) of this rank. */
tn_val tn_ops_channels(tn_build *b, tn_val v, int32_t rank);
/* Yields the gradient of operand i, summed over its broadcast dimensions and cast to its dtype. */
void tn_ops_yield_to(tn_build *b, int32_t i, tn_val gradient);
/* The diagonals of the matrices of the last two dims, as the last dim (rearrange.c). */
tn_val tn_ops_diagonal(tn_build *b, tn_val x, int64_t diagonal);
/* The diagonals of the matrices of two dimensions, as the last dim (rearrange.c). */
tn_val tn_ops_diagonal_of(tn_build *b, tn_val x, int32_t rows, int32_t columns, int64_t diagonal);
/* x with an axis repeated: each element `times` times in a row, or all of them `times` times (shape.c). */
tn_val tn_ops_repeat(tn_build *b, tn_val x, int32_t axis, int64_t times, bool each);
/* x + y, where either may be 0 for absent. */
static inline tn_val tn_ops_sum(tn_build *b, tn_val x, tn_val y) {
  return x == 0 ? y : y == 0 ? x : tn_add(b, x, y);
}

/* A composite whose types follow from its decomposition NAME_decompose: most of the ops that move, select or
 * combine elements along axes. */
#define TN_OPS_COMPOSITE(name_, doc_, struct_, options_, class_, schema_, ...)                               \
  const tn_op tn_op_##name_ = {.item = TN_ITEM(tn_op, TN_OP, #name_, doc_, struct_, options_),               \
                               .schema = schema_,                                                            \
                               .op_class = class_,                                                           \
                               .decompose = name_##_decompose,                                               \
                               __VA_ARGS__}

/* ---- costs ---- */

/* These flops; the bytes are those of all operands and results. */
void tn_ops_cost(const tn_node *n, tn_cost *cost, double flops);
static inline double tn_ops_count(const tn_type *type) {
  double n = 1;
  for (int32_t i = 0; i < type->rank; i++) n *= (double)type->dims[i];
  return n;
}
