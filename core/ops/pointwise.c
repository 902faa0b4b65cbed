/* core/ops/pointwise.c: arithmetic, comparison, logic, selection and conversion, element by element, with the
 * broadcasting of NumPy. All ops are primitive. At ties and kinks the gradients are PyTorch's. */
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
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_sign(b, tn_build_in(b, 0))));
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
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_cos(b, tn_build_in(b, 0))));
  return TN_OK;
}

static tn_status cos_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_neg(b, tn_mul(b, tn_build_out_grad(b, 0), tn_sin(b, tn_build_in(b, 0)))));
  return TN_OK;
}

static tn_status affine_grad(tn_build *b, const void *attributes) {
  const tn_affine_attributes *a = attributes;
  tn_build_yield(b, 0, tn_affine(b, tn_build_out_grad(b, 0), a->scale, 0));
  return TN_OK;
}

static tn_status cast_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_to_dtype(b, tn_build_out_grad(b, 0), tn_val_type(b, tn_build_in(b, 0))->dtype));
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

/* The chosen operand gets the gradient, the other one 0; at a tie each gets half. */
static void extremum_grad(tn_build *b, const char *loses) {
  tn_val dz = tn_build_out_grad(b, 0), zero = tn_ops_zero(b, dz);
  tn_val tie = tn_eq(b, tn_build_in(b, 0), tn_build_in(b, 1));
  tn_val shared = tn_where(b, tie, tn_affine(b, dz, 0.5, 0), dz);
  for (int32_t i = 0; i < 2; i++)
    if (tn_build_wants_grad(b, i)) {
      tn_val lost = tn_op2(b, loses, tn_build_in(b, i), tn_build_in(b, 1 - i));
      tn_ops_yield_to(b, i, tn_where(b, lost, zero, shared));
    }
}
static tn_status maximum_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  extremum_grad(b, "lt");
  return TN_OK;
}
static tn_status minimum_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  extremum_grad(b, "gt");
  return TN_OK;
}

/* dz y x^(y-1), 0 where y is 0; and dz z ln(x), 0 where 0 was raised to y >= 0. */
static tn_status pow_grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_val x = tn_build_in(b, 0), y = tn_build_in(b, 1), dz = tn_build_out_grad(b, 0),
         zero = tn_ops_zero(b, dz);
  if (tn_build_wants_grad(b, 0)) {
    tn_val slope = tn_mul(b, y, tn_pow(b, x, tn_affine(b, y, 1, -1)));
    tn_ops_yield_to(b, 0, tn_where(b, tn_eq(b, y, zero), zero, tn_mul(b, dz, slope)));
  }
  if (tn_build_wants_grad(b, 1)) {
    tn_val flat = tn_and(b, tn_eq(b, x, zero), tn_ge(b, y, zero));
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

#define POINTWISE_OP(name, doc, schema_text, more, grad_rule)                                                \
  const tn_op tn_op_##name = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, #name, doc),                               \
                              .schema = schema_text,                                                         \
                              .flags = more,                                                                 \
                              .op_class = TN_CLASS_POINTWISE,                                                \
                              .grad = grad_rule}
#define UNARY_SCHEMA   "(x:T) -> (y:T)"
#define BINARY_SCHEMA  "(x:T, y:T) -> (z:T)"
#define COMPARE_SCHEMA "(x:T, y:T) -> (z:bool)"

POINTWISE_OP(neg, "-x", UNARY_SCHEMA TN_OPS_NUMBERS, 0, neg_grad);
POINTWISE_OP(abs, "absolute value", UNARY_SCHEMA TN_OPS_NUMBERS, 0, abs_grad);
POINTWISE_OP(sign, "-1, 0 or 1; NaN stays NaN", UNARY_SCHEMA TN_OPS_NUMBERS, TN_OP_NONDIFF, NULL);
POINTWISE_OP(exp, "e to the power x", UNARY_SCHEMA TN_OPS_FLOATS, 0, exp_grad);
POINTWISE_OP(log, "natural logarithm", UNARY_SCHEMA TN_OPS_FLOATS, 0, log_grad);
POINTWISE_OP(sqrt, "square root", UNARY_SCHEMA TN_OPS_FLOATS, 0, sqrt_grad);
POINTWISE_OP(rsqrt, "1 / sqrt(x)", UNARY_SCHEMA TN_OPS_FLOATS, 0, rsqrt_grad);
POINTWISE_OP(reciprocal, "1 / x", UNARY_SCHEMA TN_OPS_FLOATS, 0, reciprocal_grad);
POINTWISE_OP(tanh, "hyperbolic tangent", UNARY_SCHEMA TN_OPS_FLOATS, 0, tanh_grad);
POINTWISE_OP(sigmoid, "1 / (1 + exp(-x))", UNARY_SCHEMA TN_OPS_FLOATS, 0, sigmoid_grad);
POINTWISE_OP(erf, "error function", UNARY_SCHEMA TN_OPS_FLOATS, 0, erf_grad);
POINTWISE_OP(sin, "sine of radians", UNARY_SCHEMA TN_OPS_FLOATS, 0, sin_grad);
POINTWISE_OP(cos, "cosine of radians", UNARY_SCHEMA TN_OPS_FLOATS, 0, cos_grad);
POINTWISE_OP(floor, "largest integer not above x", UNARY_SCHEMA TN_OPS_FLOATS, TN_OP_NONDIFF, NULL);

POINTWISE_OP(add, "x + y; integers wrap", BINARY_SCHEMA TN_OPS_NUMBERS, TN_OP_COMMUTATIVE, add_grad);
POINTWISE_OP(sub, "x - y; integers wrap", BINARY_SCHEMA TN_OPS_NUMBERS, 0, sub_grad);
POINTWISE_OP(mul, "x y; integers wrap", BINARY_SCHEMA TN_OPS_NUMBERS, TN_OP_COMMUTATIVE, mul_grad);
POINTWISE_OP(div, "x / y", BINARY_SCHEMA TN_OPS_FLOATS, 0, div_grad);
POINTWISE_OP(maximum, "the larger one; NaN if either is", BINARY_SCHEMA TN_OPS_NUMBERS, TN_OP_COMMUTATIVE,
             maximum_grad);
POINTWISE_OP(minimum, "the smaller one; NaN if either is", BINARY_SCHEMA TN_OPS_NUMBERS, TN_OP_COMMUTATIVE,
             minimum_grad);
POINTWISE_OP(pow, "x to the power y", BINARY_SCHEMA TN_OPS_FLOATS, 0, pow_grad);

POINTWISE_OP(eq, "x equals y", COMPARE_SCHEMA, TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE_OP(ne, "x differs from y", COMPARE_SCHEMA, TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE_OP(lt, "x < y", COMPARE_SCHEMA, TN_OP_NONDIFF, NULL);
POINTWISE_OP(le, "x <= y", COMPARE_SCHEMA, TN_OP_NONDIFF, NULL);
POINTWISE_OP(gt, "x > y", COMPARE_SCHEMA, TN_OP_NONDIFF, NULL);
POINTWISE_OP(ge, "x >= y", COMPARE_SCHEMA, TN_OP_NONDIFF, NULL);
POINTWISE_OP(and, "both", "(x:bool, y:bool) -> (z:bool)", TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE_OP(or, "either", "(x:bool, y:bool) -> (z:bool)", TN_OP_NONDIFF | TN_OP_COMMUTATIVE, NULL);
POINTWISE_OP(not, "the opposite", "(x:bool) -> (y:bool)", TN_OP_NONDIFF, NULL);
POINTWISE_OP(is_finite, "neither infinite nor NaN", "(x:T) -> (y:bool)" TN_OPS_FLOATS, TN_OP_NONDIFF, NULL);
POINTWISE_OP(where, "x where c holds, else y", "(c:bool, x:T, y:T) -> (z:T)", 0, where_grad);

const tn_op tn_op_cast = {
    .item = TN_ITEM(tn_op, TN_OP, "cast",
                    "x in another element type; floats round to nearest even, to integers toward zero",
                    tn_cast_attributes, cast_options),
    .schema = "(x:T) -> (y:any)",
    .op_class = TN_CLASS_POINTWISE,
    .infer = cast_infer,
    .grad = cast_grad,
};

const tn_op tn_op_affine = {
    .item = TN_ITEM(tn_op, TN_OP, "affine", "scale * x + shift", tn_affine_attributes, affine_options),
    .schema = UNARY_SCHEMA TN_OPS_FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .grad = affine_grad,
};
