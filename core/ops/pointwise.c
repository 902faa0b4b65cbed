/* Arithmetic, comparison, logic, selection and conversion, element by element, with the broadcasting
 * of NumPy. All primitive. At ties and kinks gradients are PyTorch's. */
#include <math.h>

#include "core/ops/common.h"

/* ---- gradients of one operand ---- */

static tn_status neg_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_neg(b, tn_build_out_grad(b, 0)));
  return TN_OK;
}

static tn_status abs_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_op1(b, "sign", tn_build_in(b, 0))));
  return TN_OK;
}

static tn_status exp_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_build_out(b, 0)));
  return TN_OK;
}

static tn_status log_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_div(b, tn_build_out_grad(b, 0), tn_build_in(b, 0)));
  return TN_OK;
}

/* dy / (2 y) */
static tn_status sqrt_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_div(b, tn_build_out_grad(b, 0), tn_affine(b, tn_build_out(b, 0), 2, 0)));
  return TN_OK;
}

/* -dy y^3 / 2 */
static tn_status rsqrt_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val y = tn_build_out(b, 0);
  tn_val cube = tn_mul(b, tn_mul(b, y, y), y);
  tn_build_yield(b, 0, tn_affine(b, tn_mul(b, tn_build_out_grad(b, 0), cube), -0.5, 0));
  return TN_OK;
}

/* -dy y^2 */
static tn_status reciprocal_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val y = tn_build_out(b, 0);
  tn_build_yield(b, 0, tn_neg(b, tn_mul(b, tn_build_out_grad(b, 0), tn_mul(b, y, y))));
  return TN_OK;
}

/* dy (1 - y^2) */
static tn_status tanh_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val y = tn_build_out(b, 0);
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_affine(b, tn_mul(b, y, y), -1, 1)));
  return TN_OK;
}

/* dy y (1 - y) */
static tn_status sigmoid_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val y = tn_build_out(b, 0);
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_mul(b, y, tn_affine(b, y, -1, 1))));
  return TN_OK;
}

/* dy 2 / sqrt(pi) exp(-x^2) */
static tn_status erf_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val x = tn_build_in(b, 0);
  tn_val bell = tn_exp(b, tn_neg(b, tn_mul(b, x, x)));
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_affine(b, bell, M_2_SQRTPI, 0)));
  return TN_OK;
}

static tn_status sin_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_op1(b, "cos", tn_build_in(b, 0))));
  return TN_OK;
}

static tn_status cos_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_neg(b, tn_mul(b, tn_build_out_grad(b, 0), tn_op1(b, "sin", tn_build_in(b, 0)))));
  return TN_OK;
}

static tn_status affine_grad(tn_build *b, const void *attributes) {
  const tn_affine_attributes *a = attributes;
  tn_build_yield(b, 0, tn_affine(b, tn_build_out_grad(b, 0), a->scale, 0));
  return TN_OK;
}

static tn_status cast_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_cast(b, tn_build_out_grad(b, 0), tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

/* ---- gradients of two operands ---- */

static tn_status add_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  for (int32_t i = 0; i < 2; i++)
    if (tn_build_wants_grad(b, i)) tn_ops_yield_to(b, i, tn_build_out_grad(b, 0));
  return TN_OK;
}

static tn_status sub_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  if (tn_build_wants_grad(b, 0)) tn_ops_yield_to(b, 0, tn_build_out_grad(b, 0));
  if (tn_build_wants_grad(b, 1)) tn_ops_yield_to(b, 1, tn_neg(b, tn_build_out_grad(b, 0)));
  return TN_OK;
}

static tn_status mul_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  for (int32_t i = 0; i < 2; i++)
    if (tn_build_wants_grad(b, i))
      tn_ops_yield_to(b, i, tn_mul(b, tn_build_out_grad(b, 0), tn_build_in(b, 1 - i)));
  return TN_OK;
}

/* dz / y and -dz z / y */
static tn_status div_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val part = tn_div(b, tn_build_out_grad(b, 0), tn_build_in(b, 1));
  if (tn_build_wants_grad(b, 0)) tn_ops_yield_to(b, 0, part);
  if (tn_build_wants_grad(b, 1)) tn_ops_yield_to(b, 1, tn_neg(b, tn_mul(b, part, tn_build_out(b, 0))));
  return TN_OK;
}

/* The operand that was not chosen gets nothing; at a tie each gets half. */
static void choice_grad(tn_build *b, const char *loses) {
  tn_val dz = tn_build_out_grad(b, 0), zero = tn_ops_zero(b, dz);
  tn_val tie = tn_op2(b, "eq", tn_build_in(b, 0), tn_build_in(b, 1));
  tn_val shared = tn_where(b, tie, tn_affine(b, dz, 0.5, 0), dz);
  for (int32_t i = 0; i < 2; i++)
    if (tn_build_wants_grad(b, i)) {
      tn_val lost = tn_op2(b, loses, tn_build_in(b, i), tn_build_in(b, 1 - i));
      tn_ops_yield_to(b, i, tn_where(b, lost, zero, shared));
    }
}
static tn_status maximum_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  choice_grad(b, "lt");
  return TN_OK;
}
static tn_status minimum_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  choice_grad(b, "gt");
  return TN_OK;
}

/* dz y x^(y-1), 0 where y is 0; and dz z ln(x), 0 where 0 was raised to y >= 0. */
static tn_status pow_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val x = tn_build_in(b, 0), y = tn_build_in(b, 1), dz = tn_build_out_grad(b, 0),
         zero = tn_ops_zero(b, dz);
  if (tn_build_wants_grad(b, 0)) {
    tn_val slope = tn_mul(b, y, tn_op2(b, "pow", x, tn_affine(b, y, 1, -1)));
    tn_ops_yield_to(b, 0, tn_where(b, tn_op2(b, "eq", y, zero), zero, tn_mul(b, dz, slope)));
  }
  if (tn_build_wants_grad(b, 1)) {
    tn_val flat = tn_op2(b, "and", tn_op2(b, "eq", x, zero), tn_op2(b, "ge", y, zero));
    tn_val slope = tn_mul(b, tn_build_out(b, 0), tn_log(b, x));
    tn_ops_yield_to(b, 1, tn_where(b, flat, zero, tn_mul(b, dz, slope)));
  }
  return TN_OK;
}

static tn_status where_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val c = tn_build_in(b, 0), dz = tn_build_out_grad(b, 0), zero = tn_ops_zero(b, dz);
  if (tn_build_wants_grad(b, 1)) tn_ops_yield_to(b, 1, tn_where(b, c, dz, zero));
  if (tn_build_wants_grad(b, 2)) tn_ops_yield_to(b, 2, tn_where(b, c, zero, dz));
  return TN_OK;
}

/* ---- conversion ---- */

static tn_status cast_infer(tn_infer *n) {
  const tn_cast_attributes *a = n->node.attributes;
  if (a->to == TN_ANY) return tn_fail(n, TN_EINVAL, "to", "to is any, expected an element type such as f32");
  n->node.out[0] = *n->node.in[0];
  n->node.out[0].dtype = a->to;
  return TN_OK;
}

static const tn_option cast_options[] = {
    TN_OPT(tn_cast_attributes, to, TN_OPT_DTYPE, NULL, NULL, "element type of the result"), TN_OPT_END};

static const tn_option affine_options[] = {
    TN_OPT(tn_affine_attributes, scale, TN_OPT_FLOAT, "1", NULL, "factor"),
    TN_OPT(tn_affine_attributes, shift, TN_OPT_FLOAT, "0", NULL, "added after scaling"), TN_OPT_END};

/* ---- descriptors ---- */

#define POINTWISE(name, doc, schema_text, more, grad_rule)                                                   \
  const tn_op tn_op_##name = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, #name, doc),                               \
                              .schema = schema_text,                                                         \
                              .flags = more,                                                                 \
                              .op_class = TN_CLASS_POINTWISE,                                                \
                              .grad = grad_rule}
#define UNARY   "(x:T) -> (y:T)"
#define BINARY  "(x:T, y:T) -> (z:T)"
#define COMPARE "(x:T, y:T) -> (z:bool)"

POINTWISE(neg, "-x", UNARY TN_OPS_NUMBERS, 0, neg_grad);
POINTWISE(abs, "absolute value", UNARY TN_OPS_NUMBERS, 0, abs_grad);
POINTWISE(sign, "-1, 0 or 1; NaN stays NaN", UNARY TN_OPS_NUMBERS, TN_OP_NONDIFF, NULL);
POINTWISE(exp, "e to the power x", UNARY TN_OPS_FLOATS, 0, exp_grad);
POINTWISE(log, "natural logarithm", UNARY TN_OPS_FLOATS, 0, log_grad);
POINTWISE(sqrt, "square root", UNARY TN_OPS_FLOATS, 0, sqrt_grad);
POINTWISE(rsqrt, "1 / sqrt(x)", UNARY TN_OPS_FLOATS, 0, rsqrt_grad);
POINTWISE(reciprocal, "1 / x", UNARY TN_OPS_FLOATS, 0, reciprocal_grad);
POINTWISE(tanh, "hyperbolic tangent", UNARY TN_OPS_FLOATS, 0, tanh_grad);
POINTWISE(sigmoid, "1 / (1 + exp(-x))", UNARY TN_OPS_FLOATS, 0, sigmoid_grad);
POINTWISE(erf, "error function", UNARY TN_OPS_FLOATS, 0, erf_grad);
POINTWISE(sin, "sine of radians", UNARY TN_OPS_FLOATS, 0, sin_grad);
POINTWISE(cos, "cosine of radians", UNARY TN_OPS_FLOATS, 0, cos_grad);
POINTWISE(floor, "largest whole number not above x", UNARY TN_OPS_FLOATS, TN_OP_NONDIFF, NULL);

POINTWISE(add, "x + y; whole numbers wrap", BINARY TN_OPS_NUMBERS, TN_OP_COMMUTATIVE, add_grad);
POINTWISE(sub, "x - y; whole numbers wrap", BINARY TN_OPS_NUMBERS, 0, sub_grad);
POINTWISE(mul, "x y; whole numbers wrap", BINARY TN_OPS_NUMBERS, TN_OP_COMMUTATIVE, mul_grad);
POINTWISE(div, "x / y", BINARY TN_OPS_FLOATS, 0, div_grad);
POINTWISE(maximum, "the larger one; NaN if either is", BINARY TN_OPS_NUMBERS, TN_OP_COMMUTATIVE,
          maximum_grad);
POINTWISE(minimum, "the smaller one; NaN if either is", BINARY TN_OPS_NUMBERS, TN_OP_COMMUTATIVE,
          minimum_grad);
POINTWISE(pow, "x to the power y", BINARY TN_OPS_FLOATS, 0, pow_grad);

POINTWISE(eq, "x equals y", COMPARE, TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE(ne, "x differs from y", COMPARE, TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE(lt, "x < y", COMPARE, TN_OP_NONDIFF, NULL);
POINTWISE(le, "x <= y", COMPARE, TN_OP_NONDIFF, NULL);
POINTWISE(gt, "x > y", COMPARE, TN_OP_NONDIFF, NULL);
POINTWISE(ge, "x >= y", COMPARE, TN_OP_NONDIFF, NULL);
POINTWISE(and, "both", "(x:bool, y:bool) -> (z:bool)", TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE(or, "either", "(x:bool, y:bool) -> (z:bool)", TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE(not, "the opposite", "(x:bool) -> (y:bool)", TN_OP_NONDIFF, NULL);
POINTWISE(is_finite, "neither infinite nor NaN", "(x:T) -> (y:bool)" TN_OPS_FLOATS, TN_OP_NONDIFF, NULL);
POINTWISE(where, "x where c holds, else y", "(c:bool, x:T, y:T) -> (z:T)", 0, where_grad);

const tn_op tn_op_cast = {
    .item = TN_ITEM(tn_op, TN_OP, "cast",
                    "x in another element type; floats round to nearest even, to whole numbers toward zero",
                    tn_cast_attributes, cast_options),
    .schema = "(x:T) -> (y:any)",
    .op_class = TN_CLASS_POINTWISE,
    .infer = cast_infer,
    .grad = cast_grad,
};

const tn_op tn_op_affine = {
    .item = TN_ITEM(tn_op, TN_OP, "affine", "scale * x + shift", tn_affine_attributes, affine_options),
    .schema = UNARY TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .grad = affine_grad,
};
