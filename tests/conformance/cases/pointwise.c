/* Cases of pointwise ops, activations and dropout. */
#include "../cases.h"

static tn_val unary(draw *d, const conformance_case *c) {
  return tn_op1(d->b, c->op, draw_tensor(d, draw_type(d, d->dtype, 0, 5, true), c->fill));
}

/* Two types that broadcast to `wide`, either way round; at times neither is as wide. */
static void draw_pair(draw *d, const tn_type *wide, tn_type *x, tn_type *y) {
  tn_type narrow = draw_narrower(d, wide);
  bool swap = draw_flag(d);
  *x = swap ? narrow : *wide;
  *y = swap ? *wide : narrow;
  for (int32_t i = 0; i < narrow.rank; i++) {
    tn_type *full = swap ? y : x;
    if (narrow.dims[i] != 1 && draw_between(d, 0, 3) == 0) full->dims[full->rank - narrow.rank + i] = 1;
  }
}

static tn_val binary(draw *d, const conformance_case *c) {
  tn_type x, y, wide = draw_type(d, d->dtype, 0, 5, true);
  draw_pair(d, &wide, &x, &y);
  tn_val a = draw_tensor(d, x, c->fill), b = draw_tensor(d, y, c->fill);
  return tn_op2(d->b, c->op, a, b);
}

/* A base that a power of any exponent is defined for. */
static tn_val power(draw *d, const conformance_case *c) {
  tn_type x, y, wide = draw_type(d, d->dtype, 0, 5, true);
  draw_pair(d, &wide, &x, &y);
  tn_val a = draw_tensor(d, x, FILL_POSITIVE), b = draw_tensor(d, y, FILL_ANY);
  return tn_op2(d->b, c->op, a, b);
}

static tn_val logic(draw *d, const conformance_case *c) {
  tn_type x, y, wide = draw_type(d, TN_BOOL, 0, 4, true);
  draw_pair(d, &wide, &x, &y);
  tn_val a = draw_tensor(d, x, FILL_BOOL);
  if (c->op[0] == 'n') return tn_op1(d->b, c->op, a);
  return tn_op2(d->b, c->op, a, draw_tensor(d, y, FILL_BOOL));
}

static tn_val where(draw *d, const conformance_case *c) {
  tn_type x, y, wide = draw_type(d, d->dtype, 0, 5, true), mask = draw_narrower(d, &wide);
  draw_pair(d, &wide, &x, &y);
  mask.dtype = TN_BOOL;
  tn_val m = draw_tensor(d, mask, FILL_BOOL), a = draw_tensor(d, x, c->fill), b = draw_tensor(d, y, c->fill);
  return tn_where(d->b, m, a, b);
}

static tn_val cast(draw *d, const conformance_case *c) {
  static const int32_t to[] = {TN_BOOL, TN_I32, TN_I64, TN_F32, TN_F64, TN_F64, TN_F16, TN_BF16};
  bool floats = d->dtype == TN_F64; /* differences through a rounding to fewer bits mean nothing */
  tn_begin(d->b, c->op);
  tn_arg(d->b, draw_tensor(d, draw_type(d, d->dtype, 0, 4, true), FILL_AWAY));
  tn_set_text(d->b, "to", tn_dtype_name(floats ? TN_F64 : to[draw_between(d, 0, 7)]));
  return tn_end(d->b);
}

static tn_val affine(draw *d, const conformance_case *c) {
  tn_val x = draw_tensor(d, draw_type(d, d->dtype, 0, 5, true), c->fill);
  double scale = tn_rng_between(&d->rng, -2, 2), shift = tn_rng_between(&d->rng, -2, 2);
  return tn_affine(d->b, x, scale, shift);
}

static tn_val leaky_relu(draw *d, const conformance_case *c) {
  tn_begin(d->b, c->op);
  tn_arg(d->b, draw_tensor(d, draw_type(d, d->dtype, 0, 5, true), FILL_AWAY));
  tn_set_float(d->b, "slope", tn_rng_between(&d->rng, 0, 0.5));
  return tn_end(d->b);
}

static tn_val gelu(draw *d, const conformance_case *c) {
  tn_begin(d->b, c->op);
  tn_arg(d->b, draw_tensor(d, draw_type(d, d->dtype, 0, 5, true), FILL_ANY));
  tn_set_text(d->b, "approximate", draw_flag(d) ? "tanh" : "none");
  return tn_end(d->b);
}

static tn_val dropout(draw *d, const conformance_case *c) {
  static const double p[] = {0, 0.1, 0.5, 0.9, 1};
  tn_val x = draw_tensor(d, draw_type(d, d->dtype, 0, 5, true), FILL_ANY), iteration = draw_counter(d, 0);
  tn_val block = draw_flag(d) ? draw_counter(d, 0) : 0;
  tn_begin(d->b, c->op);
  tn_arg(d->b, x);
  tn_arg(d->b, iteration);
  tn_arg(d->b, block);
  tn_set_float(d->b, "p", p[draw_between(d, 0, 4)]);
  tn_set_int(d->b, "stream", draw_between(d, 0, 1000000));
  return tn_end(d->b);
}

const conformance_case pointwise_cases[] = {
    {"neg", unary, FILL_ANY, CASE_NUMBERS},       {"abs", unary, FILL_AWAY, CASE_NUMBERS},
    {"sign", unary, FILL_AWAY, CASE_NUMBERS},     {"exp", unary, FILL_ANY, CASE_FLOATS},
    {"log", unary, FILL_POSITIVE, CASE_FLOATS},   {"sqrt", unary, FILL_POSITIVE, CASE_FLOATS},
    {"rsqrt", unary, FILL_POSITIVE, CASE_FLOATS}, {"reciprocal", unary, FILL_AWAY, CASE_FLOATS},
    {"tanh", unary, FILL_ANY, CASE_FLOATS},       {"sigmoid", unary, FILL_ANY, CASE_FLOATS},
    {"erf", unary, FILL_ANY, CASE_FLOATS},        {"sin", unary, FILL_ANY, CASE_FLOATS},
    {"cos", unary, FILL_ANY, CASE_FLOATS},        {"floor", unary, FILL_DISTINCT, CASE_FLOATS},
    {"is_finite", unary, FILL_ANY, CASE_FLOATS},  {"add", binary, FILL_ANY, CASE_NUMBERS},
    {"sub", binary, FILL_ANY, CASE_NUMBERS},      {"mul", binary, FILL_ANY, CASE_NUMBERS},
    {"div", binary, FILL_AWAY, CASE_FLOATS},      {"maximum", binary, FILL_ANY, CASE_NUMBERS},
    {"minimum", binary, FILL_ANY, CASE_NUMBERS},  {"pow", power, FILL_ANY, CASE_FLOATS},
    {"eq", binary, FILL_ANY, CASE_NUMBERS},       {"ne", binary, FILL_ANY, CASE_NUMBERS},
    {"lt", binary, FILL_ANY, CASE_NUMBERS},       {"le", binary, FILL_ANY, CASE_NUMBERS},
    {"gt", binary, FILL_ANY, CASE_NUMBERS},       {"ge", binary, FILL_ANY, CASE_NUMBERS},
    {"and", logic, FILL_BOOL, CASE_FLOATS},       {"or", logic, FILL_BOOL, CASE_FLOATS},
    {"not", logic, FILL_BOOL, CASE_FLOATS},       {"where", where, FILL_ANY, CASE_NUMBERS},
    {"cast", cast, FILL_AWAY, CASE_NUMBERS},      {"affine", affine, FILL_ANY, CASE_FLOATS},
    {"relu", unary, FILL_AWAY, CASE_FLOATS},      {"leaky_relu", leaky_relu, FILL_AWAY, CASE_FLOATS},
    {"silu", unary, FILL_ANY, CASE_FLOATS},       {"gelu", gelu, FILL_ANY, CASE_FLOATS},
    {"dropout", dropout, FILL_ANY, CASE_FLOATS},  {NULL, NULL, 0, 0},
};
