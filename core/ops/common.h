/* core/ops/common.h: what the families of ops share: axes, dimensions, messages, small pieces of
 * gradients. Private to core/ops. */
#ifndef TN_CORE_OPS_COMMON_H
#define TN_CORE_OPS_COMMON_H

#include <stdbool.h>

#include "core/ops/ops.h"
#include "tenon/attributes.h"
#include "tenon/ops.h"

/* Ends of schemas: over which types a letter ranges. */
#define TN_OPS_FLOATS  "; T in f16 bf16 f32 f64"
#define TN_OPS_NUMBERS "; T in i32 i64 f16 bf16 f32 f64"

/* The row `math` of products, and its value as text. */
#define TN_OPS_MATH(S) TN_OPT(S, math, TN_OPT_ENUM, "full", "full|tf32", "may round operands of f32 to TF32")
static inline const char *tn_ops_math(int32_t math) { return math == TN_MATH_TF32 ? "tf32" : "full"; }

/* A type in a message, "f32[8, 3]". Use it as tn_ops_text(type).v inside a call. */
typedef struct tn_ops_message {
  char v[192];
} tn_ops_message;
tn_ops_message tn_ops_text(const tn_type *type);

/* The dtype in which sums over T are formed: f64 for f64, else f32. */
static inline int32_t tn_ops_accumulator(int32_t dtype) { return dtype == TN_F64 ? TN_F64 : TN_F32; }

/* ---- checking, for infer ---- */

/* -rank .. rank-1 to 0 .. rank-1. */
tn_status tn_ops_check_axis(tn_infer *n, int64_t axis, int32_t rank, int32_t *at);
/* Which dimensions `axes` names; empty: all. */
tn_status tn_ops_check_axes(tn_infer *n, const tn_ints *axes, int32_t rank, bool *reduced);
/* Makes `dims` the dims of a type: at most TN_MAX_RANK of them, none negative. */
tn_status tn_ops_check_dims(tn_infer *n, const tn_ints *dims, tn_type *type);
/* That a list has `count` entries, each at least `least`. */
tn_status tn_ops_check_list(tn_infer *n, const char *option, const tn_ints *list, int64_t count,
                            int64_t least);
tn_status tn_ops_check_rank(tn_infer *n, const char *operand, const tn_type *type, int32_t rank,
                            const char *dims);
/* That an operand has exactly these dims. */
tn_status tn_ops_check_dims_of(tn_infer *n, const char *operand, const tn_type *type,
                               const tn_type *expected);
/* That the result's elements, and so its bytes, can be counted. */
tn_status tn_ops_check_count(tn_infer *n, const tn_type *type);

/* ---- what has been checked, for decompositions and gradients ---- */

static inline int32_t tn_ops_axis(int64_t axis, int32_t rank) {
  return (int32_t)(axis < 0 ? axis + rank : axis);
}
void tn_ops_axes(const tn_ints *axes, int32_t rank, bool *reduced);
/* The indices of the marked dimensions; returns how many. */
int64_t tn_ops_marked(const bool *marked, int32_t rank, int64_t *axes);
/* The type with marked dimensions 1, or gone. */
tn_type tn_ops_reduced(const tn_type *type, const bool *reduced, bool keep);
/* How many elements each reduced element comes from. */
int64_t tn_ops_reduced_count(const tn_type *type, const bool *reduced);

/* ---- emitting ---- */

static inline tn_type tn_ops_type(tn_build *b, tn_val v) { return *tn_val_type(b, v); }
static inline tn_val tn_ops_zero(tn_build *b, tn_val like) {
  return tn_scalar(b, tn_val_type(b, like)->dtype, 0);
}
/* v in the dtype of sums. */
static inline tn_val tn_ops_wide(tn_build *b, tn_val v) {
  return tn_cast(b, v, tn_ops_accumulator(tn_val_type(b, v)->dtype));
}
/* v, whose marked dimensions may be gone, with them as 1: broadcasts against `type`. */
tn_val tn_ops_keep(tn_build *b, tn_val v, const tn_type *type, const bool *reduced);
/* reduce_sum, ... over the marked dimensions, which stay as 1. */
tn_val tn_ops_reduce(tn_build *b, const char *op, tn_val v, const bool *reduced);
/* A [C] vector as (1, C, 1, ...) against a rank. */
tn_val tn_ops_channels(tn_build *b, tn_val v, int32_t rank);
/* The gradient of operand i: cast to its dtype, summed over what was broadcast, and yielded. */
void tn_ops_yield_to(tn_build *b, int32_t i, tn_val gradient);
/* One operand and one value that may be 0: the sum of those that are there. */
static inline tn_val tn_ops_sum(tn_build *b, tn_val x, tn_val y) {
  return x == 0 ? y : y == 0 ? x : tn_add(b, x, y);
}

/* ---- costs ---- */

/* These flops, and every operand and result moved once. */
void tn_ops_cost(const tn_node *n, tn_cost *cost, double flops);
static inline double tn_ops_count(const tn_type *type) {
  double n = 1;
  for (int32_t i = 0; i < type->rank; i++) n *= (double)type->dims[i];
  return n;
}

#endif
