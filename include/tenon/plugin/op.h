/* tenon/plugin/op.h: an op: schema, types of results, decomposition, gradient, cost. Kernels compute it
 * (plugin/kernel.h); an op with a decomposition needs no kernel.
 *
 * Life cycle: all callbacks are pure functions of their arguments. The compiling thread calls infer whenever
 * a node is made, decompose and grad while a program is compiled, cost while kernels are selected. */
#ifndef TENON_PLUGIN_OP_H
#define TENON_PLUGIN_OP_H

#include "tenon/build.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* Class of an op, for precision policies and for the pattern `CLASS+` (kernel.h). */
enum {
  TN_CLASS_OTHER = 0,
  TN_CLASS_MATMUL = 1,    /* matmul, convolutions and their gradients */
  TN_CLASS_POINTWISE = 2, /* element i of the result from element i of the (broadcast) operands */
  TN_CLASS_REDUCE = 3,
  TN_CLASS_NORM = 4,
  TN_CLASS_LOSS = 5,
  TN_CLASS_INDEX = 6, /* embedding, gathers */
  TN_CLASS_MOVE = 7,  /* reshape, transpose, slice, concat, copy: bits unchanged */
  TN_CLASS_RANDOM = 8
};

/* Flags. */
enum {
  TN_OP_NONDIFF = 1,     /* no gradient flows through: comparisons, counters, gradient ops */
  TN_OP_VIEW = 2,        /* result 0 has the elements of operand 0 in the same row-major order */
  TN_OP_COMMUTATIVE = 4, /* the first two operands may be swapped */
  TN_OP_EFFECT = 8,      /* has effects: kept although its results are unused */
  TN_OP_EXACT = 16       /* pointwise: results are not rounded, f16 operands make f16 results exactly */
};

/* One node of a graph. Operands and results are in schema order; an absent optional operand is NULL. Valid
 * during the call; a node of a match, as long as the match. */
typedef struct tn_node {
  uint32_t struct_size;
  int32_t n_in, n_out;
  const char *op;
  const void *attributes; /* the op's options struct, filled by the host */
  const tn_type *const *in;
  tn_type *out; /* infer writes dims (and dtype where the schema has no variable) */
} tn_node;

/* Handle of infer. `node` is last and has a struct_size of its own, so the struct grows with it. */
typedef struct tn_infer {
  tn_env env;
  uint32_t struct_size;
  tn_node node;
} tn_infer;

/* Work of one node. The host sets struct_size and zeroes the rest. */
typedef struct tn_cost {
  uint32_t struct_size;
  double flops; /* floating-point operations; a multiplication and an addition count as two */
  double bytes; /* of operands and results, each read or written once */
} tn_cost;

/* schema: "(x:T, w:T, bias?:T, rest*:T) -> (y:T, index:i32); T in f16 bf16 f32 f64".
 * A dtype letter stands for one dtype in the whole node; without `in` it ranges over all dtypes. Behind "T in
 * i32 f32, u8 i8 as i32" the op takes u8 and i8, too, and its callbacks and kernels do not see them: the host
 * casts operands to i32, and results of T back. `?` marks an optional operand; `*`, on the last operand, any
 * number of operands. The host sets the dtype of results with a letter or a fixed dtype before it calls
 * infer; infer sets that of results of type `any`. */
typedef struct tn_op {
  tn_item item;
  const char *schema;
  uint32_t flags, op_class;
  /* Result types. NULL: those that the decomposition yields; without a decomposition, or of the class
   * pointwise, every result has the broadcast dims of the operands. */
  tn_status (*infer)(tn_infer *n);
  /* Emits the op in terms of others and yields each result. NULL: primitive. */
  tn_status (*decompose)(tn_build *b, const void *attributes);
  /* Emits and yields d loss / d operand for each operand with tn_build_wants_grad. NULL: the host
   * differentiates the decomposition. */
  tn_status (*grad)(tn_build *b, const void *attributes);
  /* NULL: one operation for each element of the results, every operand and result moved once. */
  void (*cost)(const tn_node *n, tn_cost *cost);
  /* A pointwise op as text, "w = exp(-beta * x); y = x / (1 + w)": statements, of which the last ones define
   * the results, from operands, options and earlier statements by name, + - * / ^, comparisons, `a if c else
   * b`, `and`, `or`, `not`, the pointwise ops as functions (attributes as arguments with a name), and the
   * numbers pi, inf, nan, largest (the greatest finite one of the element type) and whole (1 for integers,
   * else 0). Shapes and decomposition are derived, and the gradient where `gradient` is NULL; infer,
   * decompose and grad stay NULL. */
  const char *formula;
  /* The values for which operands are defined, a range for each operand that has one, as options have it:
   * "x > 0; p [0, 1]; index [0, table.0)", where table.0 is dimension 0 of operand `table`. Others take every
   * real number; the default of an operand of a fixed integer dtype is [0, 1]. The conformance suite draws
   * operands from it. NULL: no operand has one. */
  const char *domain;
  /* More about operands, results, guarantees and sources, in whole sentences: for `tenon inspect OP`, the
   * reference and the op's C function. NULL: item.doc says all. */
  const char *notes;
  /* The gradient of a pointwise op as text, in place of grad: statements that define d loss / d operand, d
   * and the operand's name, from operands, results and the gradients of results, d and the result's name:
   * "part = dz / y; dx = part; dy = -(part * z)". The host leaves out statements for operands that want no
   * gradient, and sums over dimensions that were broadcast. NULL: grad, or the host differentiates the
   * decomposition. */
  const char *gradient;
  /* Names of the op in PyTorch and ONNX that differ from its own in more than capitals and underscores,
   * "multiply true_mul": for messages about unknown names. NULL: none. */
  const char *aliases;
} tn_op;

TN_END_C
#endif
