/* core/export/onnx/rows/pointwise.c: arithmetic, comparison, logic, selection and conversion. */
#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

static bool pointwise_takes_bool(const export_use *u) { return export_type(u, 0)->dtype == TN_BOOL; }
static bool pointwise_takes_byte(const export_use *u) { return export_type(u, 0)->dtype == TN_U8; }
static bool pointwise_takes_float(const export_use *u) { return tn_dtype_is_float(export_type(u, 0)->dtype); }

/* A factor of 1 and a shift of 0 are left out. */
static tn_status pointwise_affine(const export_use *u) {
  const tn_affine_attributes *a = u->node->attributes;
  if (a->shift == 0)
    return export_yield(u, a->scale == 1 ? "Identity(x)" : a->scale == -1 ? "Neg(x)" : "Mul(x, {scale})");
  return export_yield(u, a->scale == 1 ? "Add(x, {shift})" : "Add(Mul(x, {scale}), {shift})");
}

/* ---- whole numbers ---- */

static bool pointwise_takes_whole(const export_use *u) { return !pointwise_takes_float(u); }

/* Bits of operands that BitShift, which has none with a sign, does not take: by powers of two in i64. */
static tn_status pointwise_shift_left(const export_use *u) {
  int bits = 8 * (int)tn_dtype_size(export_type(u, 0)->dtype);
  return export_yield(
      u,
      "by = Cast(y, to=i64); none = Or(Less(by, 0:i64), Greater(by, %d:i64)); "
      "Cast(Where(none, 0:i64, Mul(Cast(x, to=i64), Pow(2:i64, Where(none, 0:i64, by)))), to=T)",
      bits - 1);
}

/* Rounded down, so the rest has the sign of the divisor. */
static tn_status pointwise_shift_right(const export_use *u) {
  return export_yield(
      u, "by = Cast(y, to=i64); v = Cast(x, to=i64); all = Or(Less(by, 0:i64), Greater(by, 62:i64)); "
         "p = Pow(2:i64, Where(all, 0:i64, by)); "
         "Cast(Where(all, Neg(Cast(Less(v, 0:i64), to=i64)), Div(Sub(v, Mod(v, p)), p)), to=T)");
}

const export_row export_rows_pointwise[] = {
    {"abs", "Abs(x)"},
    {"neg", "Sub(0, x)", .takes = pointwise_takes_byte},
    {"neg", "Neg(x)"},
    {"sign", "Sign(x)"},
    {"exp", "Exp(x)"},
    {"log", "Log(x)"},
    {"sqrt", "Sqrt(x)"},
    {"rsqrt", "Reciprocal(Sqrt(x))"},
    {"reciprocal", "Reciprocal(x)"},
    {"erf", "Erf(x)"},
    {"erfc", "Sub(1, Erf(x))"},
    {"floor", "Floor(x)"},
    {"ceil", "Ceil(x)"},
    {"round", "Round(x)"},
    {"trunc", "Where(Less(x, 0), Ceil(x), Floor(x))"},
    {"sin", "Sin(x)"},
    {"cos", "Cos(x)"},
    {"tan", "Tan(x)"},
    {"asin", "Asin(x)"},
    {"acos", "Acos(x)"},
    {"atan", "Atan(x)"},
    {"sinh", "Sinh(x)"},
    {"cosh", "Cosh(x)"},
    {"asinh", "Asinh(x)"},
    {"acosh", "Acosh(x)"},
    {"atanh", "Atanh(x)"},
    {"exp2", "Pow(2, x)"},
    {"expm1", "Sub(Exp(x), 1)"},
    {"log2", "Mul(Log(x), 1.4426950408889634)"},
    {"log10", "Mul(Log(x), 0.4342944819032518)"},
    {"log1p", "Log(Add(x, 1))"},
    {"pow", "Pow(x, y)"},
    {"hypot", "Sqrt(Add(Mul(x, x), Mul(y, y)))"},
    /* the quadrant of the point (y, x) */
    {"atan2", "t = Atan(Div(x, y)); none = And(Equal(x, 0), Equal(y, 0)); "
              "far = Where(Less(x, 0), Sub(t, 3.141592653589793), Add(t, 3.141592653589793)); "
              "Where(none, 0, Where(Less(y, 0), far, t))"},
    {"copysign", "Mul(Abs(x), Where(Or(Less(y, 0), Less(Reciprocal(y), 0)), -1, 1))"},
    {"add", "Add(x, y)"},
    {"sub", "Sub(x, y)"},
    {"mul", "Mul(x, y)"},
    {"div", "Div(x, y)"},
    {"quotient", "Div(x, y)"},
    {"fmod", "Mod(x, y, fmod=1)"},
    {"maximum", "Max(x, y)"},
    {"minimum", "Min(x, y)"},
    {"square", "Mul(x, x)"},
    {"affine", .emit = pointwise_affine},
    {"bitwise_and", "And(x, y)", .takes = pointwise_takes_bool},
    {"bitwise_or", "Or(x, y)", .takes = pointwise_takes_bool},
    {"bitwise_xor", "Xor(x, y)", .takes = pointwise_takes_bool},
    {"bitwise_and", "BitwiseAnd(x, y)", .since = 18},
    {"bitwise_or", "BitwiseOr(x, y)", .since = 18},
    {"bitwise_xor", "BitwiseXor(x, y)", .since = 18},
    {"bitwise_not", "Not(x)", .takes = pointwise_takes_bool},
    {"bitwise_not", "BitwiseNot(x)", .since = 18},
    {"shift_left", .emit = pointwise_shift_left, .takes = pointwise_takes_whole},
    {"shift_right", .emit = pointwise_shift_right, .takes = pointwise_takes_whole},
    {"eq", "Equal(x, y)"},
    {"ne", "Not(Equal(x, y))"},
    {"lt", "Less(Cast(x, to=i32), Cast(y, to=i32))", .takes = pointwise_takes_bool},
    {"le", "LessOrEqual(Cast(x, to=i32), Cast(y, to=i32))", .takes = pointwise_takes_bool},
    {"gt", "Greater(Cast(x, to=i32), Cast(y, to=i32))", .takes = pointwise_takes_bool},
    {"ge", "GreaterOrEqual(Cast(x, to=i32), Cast(y, to=i32))", .takes = pointwise_takes_bool},
    {"lt", "Less(x, y)"},
    {"le", "LessOrEqual(x, y)"},
    {"gt", "Greater(x, y)"},
    {"ge", "GreaterOrEqual(x, y)"},
    {"and", "And(x, y)"},
    {"or", "Or(x, y)"},
    {"not", "Not(x)"},
    {"where", "Where(c, x, y)"},
    {"masked_fill", "Where(mask, {value}, x)", .takes = pointwise_takes_float},
    {"is_finite", "Not(Or(IsInf(x), IsNaN(x)))"},
    {"is_nan", "IsNaN(x)"},
    {"is_inf", "IsInf(x)"},
    {"is_pos_inf", "IsInf(x, detect_negative=0)"},
    {"is_neg_inf", "IsInf(x, detect_positive=0)"},
    {"cast", "Cast(x, to={to})"},
    {NULL},
};
