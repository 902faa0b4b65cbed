/* core/onnx/rows/pointwise.c: operators of single elements. */
#include <math.h>
#include <string.h>

#include "core/onnx/import.h"

static bool is_float(const onnx_use *n, int32_t i) { return onnx_operand(n, i)->type.dtype == TN_F32; }

static tn_status row_div(const onnx_use *n) {
  return onnx_emit(n, NULL, 0, is_float(n, 0) ? "div" : "quotient");
}

static tn_status row_mod(const onnx_use *n) {
  return onnx_emit(n, NULL, 0, onnx_whole(n, "fmod", 0) ? "fmod" : "remainder");
}

/* Of whole numbers, by way of doubles. */
static tn_status pow_of_wholes(const onnx_use *n) {
  const char *x = onnx_text_of(n, 0, false), *y = onnx_text_of(n, 1, false);
  if (x == NULL || y == NULL) return onnx_failed(n);
  return onnx_compute(n, "cast(pow(cast(%s, to=f64), cast(%s, to=f64)), to=%s)", x, y,
                      tn_dtype_name(onnx_operand(n, 0)->type.dtype));
}

static tn_status row_pow(const onnx_use *n) {
  if (!is_float(n, 0) || !is_float(n, 1)) return pow_of_wholes(n);
  int64_t count;
  const double *known = onnx_peek(n, 1, &count);
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  if (known != NULL && count == 1) {
    const char *operand[] = {x};
    return known[0] == 2 ? onnx_emit(n, operand, 1, "square")
                         : onnx_compute(n, "%s ** %s", x, onnx_float_text(n, known[0]));
  }
  return onnx_emit(n, NULL, 0, "pow");
}

/* A bound of Clip: an operand, or before version 11 an attribute. */
static tn_status clip_bound(const onnx_use *n, int32_t i, const char *name, double none, double *bound) {
  int64_t count;
  *bound = onnx_number(n, name, none);
  if (!onnx_has(n, i)) return TN_OK;
  const double *known = onnx_known(n, i, &count);
  if (known == NULL || count != 1) return ONNX_REFUSE(n, "a bound that depends on the inputs of the model");
  *bound = known[0];
  return TN_OK;
}

static tn_status row_clip(const onnx_use *n) {
  double low, high;
  TN_TRY(clip_bound(n, 1, "min", -HUGE_VAL, &low));
  TN_TRY(clip_bound(n, 2, "max", HUGE_VAL, &high));
  const char *x[] = {onnx_text_of(n, 0, false)};
  if (x[0] == NULL) return onnx_failed(n);
  if (low == 0 && high == 6) return onnx_emit(n, x, 1, "relu6");
  return onnx_emit(n, x, 1, "clip(min=%s, max=%s)", onnx_float_text(n, low), onnx_float_text(n, high));
}

static tn_status row_hard_sigmoid(const onnx_use *n) {
  double alpha = onnx_number(n, "alpha", 0.2), beta = onnx_number(n, "beta", 0.5);
  if (fabs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5) return onnx_emit(n, NULL, 0, "hardsigmoid");
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  return onnx_compute(n, "clip(%s * %s + %s, min=0, max=1)", x, onnx_float_text(n, alpha),
                      onnx_float_text(n, beta));
}

/* The defaults of ONNX are those of the op. */
static tn_status row_selu(const onnx_use *n) {
  double alpha = onnx_number(n, "alpha", 1.67326319217681884765625),
         gamma = onnx_number(n, "gamma", 1.05070102214813232421875);
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  return onnx_compute(n, "elu(%s, alpha=%s) * %s", x, onnx_float_text(n, alpha), onnx_float_text(n, gamma));
}

static tn_status row_shrink(const onnx_use *n) {
  const char *x = onnx_text_of(n, 0, false), *bias = onnx_float_text(n, onnx_number(n, "bias", 0));
  if (x == NULL) return onnx_failed(n);
  return onnx_compute(n, "0 if abs(%s) <= %s else %s - sign(%s) * %s", x,
                      onnx_float_text(n, onnx_number(n, "lambd", 0.5)), x, x, bias);
}

static tn_status row_swish(const onnx_use *n) {
  const char *x = onnx_text_of(n, 0, false);
  double alpha = onnx_number(n, "alpha", 1);
  if (x == NULL || alpha == 1) return x == NULL ? onnx_failed(n) : onnx_emit(n, NULL, 0, "silu");
  return onnx_compute(n, "%s * sigmoid(%s * %s)", x, x, onnx_float_text(n, alpha));
}

static tn_status row_is_inf(const onnx_use *n) {
  bool up = onnx_whole(n, "detect_positive", 1), down = onnx_whole(n, "detect_negative", 1);
  return onnx_emit(n, NULL, 0, up && down ? "is_inf" : up ? "is_pos_inf" : "is_neg_inf");
}

static tn_status cast_to(const onnx_use *n, int32_t dtype) {
  if (dtype == TN_ANY) return ONNX_REFUSE(n, "a cast to a type that Tenon lacks");
  if (onnx_operand(n, 0)->type.dtype == dtype) return onnx_pass(n, 0);
  const char *x[] = {onnx_text_of(n, 0, false)};
  return x[0] != NULL ? onnx_emit(n, x, 1, "cast(to=%s)", tn_dtype_name(dtype)) : onnx_failed(n);
}

/* The bits of a type of whole numbers that Tenon keeps in a wider one; 0: it has the type. */
static int32_t cast_bits(int32_t data_type) {
  static const struct {
    int32_t data_type, bits;
  } rows[] = {{TN_ONNX_UINT16, 16}, {TN_ONNX_INT16, -16}, {TN_ONNX_UINT4, 4},
              {TN_ONNX_INT4, -4},   {TN_ONNX_UINT2, 2},   {TN_ONNX_INT2, -2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].data_type == data_type) return rows[i].bits;
  return 0;
}

static tn_status cast_type(const onnx_use *n, int32_t data_type) {
  int32_t bits = cast_bits(data_type), dtype = onnx_value_dtype(data_type), from = onnx_data_type(n, 0);
  bool small = data_type >= TN_ONNX_FLOAT8E4M3FN && dtype == TN_F32;
  if (small && from != data_type) return ONNX_REFUSE(n, "rounding to %s", tn_onnx_type_name(data_type));
  if (bits == 0 || from == data_type) return cast_to(n, dtype);
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  int32_t size = 1 << (bits < 0 ? -bits : bits), half = bits < 0 ? size / 2 : 0;
  TN_TRY(onnx_compute(n, "cast((cast(%s, to=i32) + %d) %% %d - %d, to=%s)", x, half, size, half,
                      tn_dtype_name(dtype)));
  onnx_find(n->m, n->node->out[0])->data_type = data_type;
  return TN_OK;
}

static tn_status row_cast(const onnx_use *n) {
  return cast_type(n, (int32_t)onnx_whole(n, "to", TN_ONNX_FLOAT));
}

static tn_status row_cast_like(const onnx_use *n) {
  int32_t known = onnx_data_type(n, 1);
  return known != 0 ? cast_type(n, known) : cast_to(n, onnx_operand(n, 1)->type.dtype);
}

static tn_status row_pass(const onnx_use *n) { return onnx_pass(n, 0); }

/* A layer of the model again: training uses it. Its rate is an operand since version 12. */
static tn_status row_dropout(const onnx_use *n) {
  double rate = onnx_number(n, "ratio", 0.5);
  int64_t count;
  const char *x[] = {onnx_text_of(n, 0, false)};
  if (onnx_has(n, 1)) {
    const double *known = onnx_known(n, 1, &count);
    if (known == NULL || count != 1) return ONNX_REFUSE(n, "a rate that depends on the inputs of the model");
    rate = known[0];
  }
  if (onnx_wants(n, 1)) return ONNX_REFUSE(n, "the mask as a result");
  return x[0] != NULL ? onnx_emit(n, x, 1, "dropout(%s)", onnx_float_text(n, rate)) : onnx_failed(n);
}

/* An op of two operands over any number of them. */
static tn_status row_chain(const onnx_use *n, const char *op) {
  if (n->node->n_in == 1) return onnx_pass(n, 0);
  const char *pair[2] = {onnx_text_of(n, 0, true), NULL};
  for (int32_t i = 1; i < n->node->n_in && pair[0] != NULL; i++) {
    pair[1] = onnx_text_of(n, i, true);
    if (pair[1] == NULL) break;
    if (i + 1 == n->node->n_in) return onnx_emit(n, pair, 2, "%s", op);
    pair[0] = onnx_between(n, pair, 2, "%s", op);
  }
  return onnx_failed(n);
}
static tn_status row_max(const onnx_use *n) { return row_chain(n, "maximum"); }
static tn_status row_min(const onnx_use *n) { return row_chain(n, "minimum"); }
static tn_status row_sum(const onnx_use *n) {
  return n->node->n_in == 1 ? onnx_pass(n, 0) : onnx_emit(n, NULL, 0, "add");
}

static tn_status row_mean(const onnx_use *n) {
  const char *sum = onnx_text_of(n, 0, false);
  for (int32_t i = 1; i < n->node->n_in && sum != NULL; i++) {
    const char *next = onnx_text_of(n, i, true);
    sum = next != NULL ? onnx_print(n, "%s + %s", sum, next) : NULL;
  }
  return sum != NULL ? onnx_compute(n, "(%s) / %d", sum, n->node->n_in) : onnx_failed(n);
}

static tn_status row_where(const onnx_use *n) {
  const char *c = onnx_text_of(n, 0, false), *yes = onnx_text_of(n, 1, true), *no = onnx_text_of(n, 2, true);
  if (c == NULL || yes == NULL || no == NULL) return onnx_failed(n);
  return onnx_compute(n, "%s if %s else %s", yes, c, no);
}

static tn_status row_shift(const onnx_use *n) {
  return onnx_emit(n, NULL, 0,
                   strcmp(onnx_word(n, "direction", ""), "LEFT") == 0 ? "shift_left" : "shift_right");
}

/* Before version 9 a slope of one dimension belongs to the channels. */
static tn_status row_prelu(const onnx_use *n) {
  const tn_type x = onnx_operand(n, 0)->type, slope = onnx_operand(n, 1)->type;
  bool channels = n->m->file->opset < 9 && slope.rank == 1 && x.rank > 2 && x.dims[1] == slope.dims[0];
  const char *text = onnx_text_of(n, 0, false), *by = onnx_text_of(n, 1, false), *beside = "";
  if (text == NULL || by == NULL) return onnx_failed(n);
  for (int32_t i = 2; i < x.rank; i++) beside = onnx_print(n, "%s, None", beside);
  return channels ? onnx_compute(n, "prelu(%s, %s[:%s])", text, by, beside) : onnx_emit(n, NULL, 0, "prelu");
}

static tn_status row_threshold(const onnx_use *n) {
  return onnx_emit(n, NULL, 0, "threshold(threshold=%s, value=0)",
                   onnx_float_text(n, onnx_number(n, "alpha", 1)));
}

const onnx_row onnx_pointwise_rows[] = {
    {"Abs", NULL, "abs"},
    {"Acos", NULL, "acos"},
    {"Acosh", NULL, "acosh"},
    {"Asin", NULL, "asin"},
    {"Asinh", NULL, "asinh"},
    {"Atan", NULL, "atan"},
    {"Atanh", NULL, "atanh"},
    {"Ceil", NULL, "ceil"},
    {"Cos", NULL, "cos"},
    {"Cosh", NULL, "cosh"},
    {"Erf", NULL, "erf"},
    {"Exp", NULL, "exp"},
    {"Floor", NULL, "floor"},
    {"IsNaN", NULL, "is_nan"},
    {"Log", NULL, "log"},
    {"Mish", NULL, "mish"},
    {"Neg", NULL, "neg"},
    {"Not", NULL, "op.not"},
    {"Reciprocal", NULL, "reciprocal"},
    {"Relu", NULL, "relu"},
    {"Round", NULL, "round"},
    {"Sigmoid", NULL, "sigmoid"},
    {"Sign", NULL, "sign"},
    {"Sin", NULL, "sin"},
    {"Sinh", NULL, "sinh"},
    {"Softplus", NULL, "softplus"},
    {"Softsign", NULL, "softsign"},
    {"Sqrt", NULL, "sqrt"},
    {"Tan", NULL, "tan"},
    {"Tanh", NULL, "tanh"},
    {"HardSwish", NULL, "hardswish"},
    {"BitwiseNot", NULL, "bitwise_not"},
    {"Identity", row_pass, NULL},
    {"Celu", NULL, "celu(alpha={alpha=1})"},
    {"Elu", NULL, "elu(alpha={alpha=1})"},
    {"Gelu", NULL, "gelu(approximate={approximate=none})"},
    {"LeakyRelu", NULL, "leaky_relu({alpha=0.01})"},
    {"ThresholdedRelu", row_threshold, NULL},
    {"HardSigmoid", row_hard_sigmoid, NULL},
    {"Selu", row_selu, NULL},
    {"Shrink", row_shrink, NULL},
    {"Swish", row_swish, NULL},
    {"IsInf", row_is_inf, NULL},
    {"Clip", row_clip, NULL},
    {"Cast", row_cast, NULL},
    {"CastLike", row_cast_like, NULL, 2},
    {"Dropout", row_dropout, NULL},
    {"Add", NULL, "add", 2},
    {"Sub", NULL, "sub", 2},
    {"Mul", NULL, "mul", 2},
    {"Div", row_div, NULL, 2},
    {"Mod", row_mod, NULL},
    {"Pow", row_pow, NULL, 2},
    {"And", NULL, "op.and"},
    {"Or", NULL, "op.or"},
    {"Xor", NULL, "logical_xor"},
    {"BitwiseAnd", NULL, "bitwise_and"},
    {"BitwiseOr", NULL, "bitwise_or"},
    {"BitwiseXor", NULL, "bitwise_xor"},
    {"BitShift", row_shift, NULL},
    {"Equal", NULL, "eq"},
    {"Greater", NULL, "gt"},
    {"GreaterOrEqual", NULL, "ge"},
    {"Less", NULL, "lt"},
    {"LessOrEqual", NULL, "le"},
    {"PRelu", row_prelu, NULL, 2},
    {"Where", row_where, NULL, 3},
    {"Max", row_max, NULL},
    {"Min", row_min, NULL},
    {"Sum", row_sum, NULL},
    {"Mean", row_mean, NULL},
    {NULL, NULL, NULL},
};
