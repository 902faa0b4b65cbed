/* core/ops/pointwise.c: arithmetic, comparison, logic, selection and conversion, element by element, with the
 * broadcasting of NumPy. All ops are primitive. At ties and kinks the gradients are PyTorch's. */
#include "core/ops/rows.h"
#include "tenon/plugin/functions.h"

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

const tn_op tn_op_cast = {
    .item = TN_ITEM(tn_op, TN_OP, "cast",
                    "x in another element type; floats round to nearest even, to integers toward zero",
                    tn_cast_attributes, cast_options),
    .schema = "(x:T) -> (y:any)",
    .op_class = TN_CLASS_POINTWISE,
    .infer = cast_infer,
    .gradient = "dx = dy",
};

static const tn_option affine_options[] = {
    TN_OPT(tn_affine_attributes, scale, TN_OPT_FLOAT, "1", NULL, "factor"),
    TN_OPT(tn_affine_attributes, shift, TN_OPT_FLOAT, "0", NULL, "added after scaling"), TN_OPT_END};

const tn_op tn_op_affine = {
    .item = TN_ITEM(tn_op, TN_OP, "affine", "scale * x + shift", tn_affine_attributes, affine_options),
    .schema = UNARY FLOATS,
    .op_class = TN_CLASS_POINTWISE,
    .gradient = "dx = scale * dy",
};

/* ---- one operand ---- */

ROW(neg, "-x", UNARY BOTH, .flags = TN_OP_EXACT, .gradient = "dx = -dy", .aliases = "negative");
ROW(abs, "absolute value", UNARY BOTH, .flags = TN_OP_EXACT, .gradient = "dx = dy * sign(x)",
    .aliases = "absolute");
ROW(sign, "-1, 0 or 1; NaN stays NaN", UNARY BOTH, .flags = TN_OP_NONDIFF | TN_OP_EXACT);
ROW(exp, "e to the power x", UNARY FLOATS, .gradient = "dx = dy * y");
ROW(log, "natural logarithm", UNARY FLOATS, .domain = "x > 0", .gradient = "dx = dy / x");
ROW(sqrt, "square root", UNARY FLOATS, .domain = "x >= 0", .gradient = "dx = dy / (2 * y)");
ROW(rsqrt, "1 / sqrt(x)", UNARY FLOATS, .domain = "x > 0", .gradient = "dx = -0.5 * (dy * (y * y * y))");
ROW(reciprocal, "1 / x", UNARY FLOATS, .gradient = "dx = -(dy * (y * y))");
ROW(tanh, "hyperbolic tangent", UNARY FLOATS, .gradient = "dx = dy * (1 - y * y)");
ROW(sigmoid, "1 / (1 + exp(-x))", UNARY FLOATS, .gradient = "dx = dy * (y * (1 - y))",
    .aliases = "logistic expit");
ROW(erf, "error function", UNARY FLOATS, .gradient = "dx = dy * (1.12837916709551257390 * exp(-(x * x)))");
ROW(floor, "largest integer not above x", UNARY FLOATS, .flags = TN_OP_NONDIFF | TN_OP_EXACT);
ROW(is_finite, "neither infinite nor NaN", TEST FLOATS, .flags = TN_OP_NONDIFF | TN_OP_EXACT);

/* ---- two operands ---- */

ROW(add, "x + y; integers wrap", BINARY BOTH, .flags = TN_OP_COMMUTATIVE, .gradient = "dx = dz; dy = dz");
ROW(sub, "x - y; integers wrap", BINARY BOTH, .gradient = "dx = dz; dy = -dz", .aliases = "subtract");
ROW(mul, "x y; integers wrap", BINARY BOTH, .flags = TN_OP_COMMUTATIVE,
    .gradient = "dx = dz * y; dy = dz * x", .aliases = "multiply");
ROW(div, "x / y", BINARY FLOATS, .gradient = "part = dz / y; dx = part; dy = -(part * z)",
    .aliases = "divide true_divide");
/* The chosen operand gets the gradient, the other one 0; at a tie each gets half. */
ROW(maximum, "the larger one; NaN if either is", BINARY BOTH, .flags = TN_OP_COMMUTATIVE | TN_OP_EXACT,
    .gradient = "part = 0.5 * dz if x == y else dz; dx = 0 if x < y else part; dy = 0 if y < x else part",
    .aliases = "max");
ROW(minimum, "the smaller one; NaN if either is", BINARY BOTH, .flags = TN_OP_COMMUTATIVE | TN_OP_EXACT,
    .gradient = "part = 0.5 * dz if x == y else dz; dx = 0 if x > y else part; dy = 0 if y > x else part",
    .aliases = "min");

/* ---- whole numbers ---- */

#define BITS "; T in bool u8 i8 i32 i64"
ROW(bitwise_and, "the bits that both have", BINARY BITS,
    .flags = TN_OP_NONDIFF | TN_OP_COMMUTATIVE | TN_OP_EXACT);
ROW(bitwise_or, "the bits that either has", BINARY BITS,
    .flags = TN_OP_NONDIFF | TN_OP_COMMUTATIVE | TN_OP_EXACT);
ROW(bitwise_xor, "the bits that one of them has", BINARY BITS,
    .flags = TN_OP_NONDIFF | TN_OP_COMMUTATIVE | TN_OP_EXACT);
ROW(shift_left, "x times 2 to the power y; 0 where y is not less than the number of bits, or negative",
    BINARY WHOLES, .flags = TN_OP_NONDIFF | TN_OP_EXACT, .domain = "y [0, 70]",
    .aliases = "bitwise_left_shift");
ROW(shift_right, "x divided by 2 to the power y, rounded down; as by all bits where y is negative",
    BINARY WHOLES, .flags = TN_OP_NONDIFF | TN_OP_EXACT, .domain = "y [0, 70]",
    .aliases = "bitwise_right_shift");
ROW(quotient, "x / y toward zero; 0 where y is 0", BINARY WHOLES, .flags = TN_OP_NONDIFF | TN_OP_EXACT);
ROW(fmod, "the rest of x / y toward zero, of the sign of x; 0 for integers where y is 0", BINARY BOTH,
    .flags = TN_OP_EXACT, .gradient = "dx = dz; dy = -(dz * trunc(x / y))");

/* ---- functions of C's library ---- */

#define UNARY_ROW(op, function, work, doc, range, rule, names)                                               \
  ROW(op, doc, UNARY FLOATS, .domain = range, .gradient = rule, .aliases = names);
#define BINARY_ROW(op, function, work, doc, range, rule, names)                                              \
  ROW(op, doc, BINARY FLOATS, .domain = range, .gradient = rule, .aliases = names);
#define ROUNDING_ROW(op, function, work, doc, range, rule, names)                                            \
  ROW(op, doc, UNARY FLOATS, .flags = TN_OP_NONDIFF | TN_OP_EXACT, .aliases = names);
#define SIGN_ROW(op, function, work, doc, range, rule, names)                                                \
  ROW(op, doc, BINARY FLOATS, .flags = TN_OP_EXACT, .gradient = rule, .aliases = names);
TN_UNARY_FUNCTIONS(UNARY_ROW)
TN_BINARY_FUNCTIONS(BINARY_ROW)
TN_ROUNDING_FUNCTIONS(ROUNDING_ROW)
TN_SIGN_FUNCTIONS(SIGN_ROW)

/* ---- comparison, logic, selection ---- */

ROW(eq, "x equals y", COMPARE, .flags = TN_OP_NONDIFF | TN_OP_COMMUTATIVE | TN_OP_EXACT, .aliases = "equal");
ROW(ne, "x differs from y", COMPARE, .flags = TN_OP_NONDIFF | TN_OP_COMMUTATIVE | TN_OP_EXACT,
    .aliases = "not_equal");
ROW(lt, "x < y", COMPARE, .flags = TN_OP_NONDIFF | TN_OP_EXACT, .aliases = "less");
ROW(le, "x <= y", COMPARE, .flags = TN_OP_NONDIFF | TN_OP_EXACT, .aliases = "less_equal less_or_equal");
ROW(gt, "x > y", COMPARE, .flags = TN_OP_NONDIFF | TN_OP_EXACT, .aliases = "greater");
ROW(ge, "x >= y", COMPARE, .flags = TN_OP_NONDIFF | TN_OP_EXACT, .aliases = "greater_equal greater_or_equal");
ROW(and, "both", "(x:bool, y:bool) -> (z:bool)", .flags = TN_OP_NONDIFF | TN_OP_COMMUTATIVE | TN_OP_EXACT);
ROW(or, "either", "(x:bool, y:bool) -> (z:bool)", .flags = TN_OP_NONDIFF | TN_OP_COMMUTATIVE | TN_OP_EXACT);
ROW(not, "the opposite", "(x:bool) -> (y:bool)", .flags = TN_OP_NONDIFF | TN_OP_EXACT);
ROW(where, "x where c holds, else y", "(c:bool, x:T, y:T) -> (z:T)", .flags = TN_OP_EXACT,
    .gradient = "dx = dz if c else 0; dy = 0 if c else dz");
