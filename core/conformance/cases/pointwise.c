/* core/conformance/cases/pointwise.c: cases of pointwise ops, activations and dropout. */
#include "core/conformance/cases/cases.h"

static tn_val pointwise_case_unary(tn_draw *d, const tn_case *c) {
  return tn_op1(d->b, c->op, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 5, true), c->fill));
}

/* Two types, in either order, that broadcast to `wide`; sometimes neither equals it. */
static void draw_broadcast_pair(tn_draw *d, const tn_type *wide, tn_type *x, tn_type *y) {
  tn_type narrow = tn_draw_narrower(d, wide);
  bool swap = tn_draw_flag(d);
  *x = swap ? narrow : *wide;
  *y = swap ? *wide : narrow;
  for (int32_t i = 0; i < narrow.rank; i++) {
    tn_type *full = swap ? y : x;
    if (narrow.dims[i] != 1 && tn_draw_between(d, 0, 3) == 0) full->dims[full->rank - narrow.rank + i] = 1;
  }
}

static tn_val pointwise_case_binary(tn_draw *d, const tn_case *c) {
  tn_type x, y, wide = tn_draw_type(d, d->dtype, 0, 5, true);
  draw_broadcast_pair(d, &wide, &x, &y);
  tn_val a = tn_draw_tensor(d, x, c->fill), b = tn_draw_tensor(d, y, c->fill);
  return tn_op2(d->b, c->op, a, b);
}

/* Bases for which every exponent is defined. */
static tn_val pointwise_case_power(tn_draw *d, const tn_case *c) {
  tn_type x, y, wide = tn_draw_type(d, d->dtype, 0, 5, true);
  draw_broadcast_pair(d, &wide, &x, &y);
  tn_val a = tn_draw_tensor(d, x, TN_FILL_POSITIVE), b = tn_draw_tensor(d, y, TN_FILL_ANY);
  return tn_op2(d->b, c->op, a, b);
}

static tn_val pointwise_case_logic(tn_draw *d, const tn_case *c) {
  tn_type x, y, wide = tn_draw_type(d, TN_BOOL, 0, 4, true);
  draw_broadcast_pair(d, &wide, &x, &y);
  tn_val a = tn_draw_tensor(d, x, TN_FILL_BOOL);
  if (c->op[0] == 'n') return tn_op1(d->b, c->op, a);
  return tn_op2(d->b, c->op, a, tn_draw_tensor(d, y, TN_FILL_BOOL));
}

static tn_val pointwise_case_where(tn_draw *d, const tn_case *c) {
  tn_type x, y, wide = tn_draw_type(d, d->dtype, 0, 5, true), mask = tn_draw_narrower(d, &wide);
  draw_broadcast_pair(d, &wide, &x, &y);
  mask.dtype = TN_BOOL;
  tn_val m = tn_draw_tensor(d, mask, TN_FILL_BOOL), a = tn_draw_tensor(d, x, c->fill),
         b = tn_draw_tensor(d, y, c->fill);
  return tn_where(d->b, m, a, b);
}

static tn_val pointwise_case_cast(tn_draw *d, const tn_case *c) {
  static const int32_t to[] = {TN_BOOL, TN_I32, TN_I64, TN_F32, TN_F64, TN_F64, TN_F16, TN_BF16};
  bool floats = d->dtype == TN_F64; /* finite differences need a cast that does not round */
  tn_op_begin(d->b, c->op);
  tn_op_arg(d->b, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 4, true), TN_FILL_AWAY));
  tn_op_set_text(d->b, "to", tn_dtype_name(floats ? TN_F64 : to[tn_draw_between(d, 0, 7)]));
  return tn_op_end(d->b);
}

static tn_val pointwise_case_affine(tn_draw *d, const tn_case *c) {
  tn_val x = tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 5, true), c->fill);
  double scale = tn_rng_between(&d->rng, -2, 2), shift = tn_rng_between(&d->rng, -2, 2);
  return tn_affine(d->b, x, scale, shift);
}

static tn_val pointwise_case_leaky_relu(tn_draw *d, const tn_case *c) {
  tn_op_begin(d->b, c->op);
  tn_op_arg(d->b, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 5, true), TN_FILL_AWAY));
  tn_op_set_float(d->b, "slope", tn_rng_between(&d->rng, 0, 0.5));
  return tn_op_end(d->b);
}

static tn_val pointwise_case_gelu(tn_draw *d, const tn_case *c) {
  tn_op_begin(d->b, c->op);
  tn_op_arg(d->b, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 5, true), TN_FILL_ANY));
  tn_op_set_text(d->b, "approximate", tn_draw_flag(d) ? "tanh" : "none");
  return tn_op_end(d->b);
}

static tn_val pointwise_case_gelu_grad(tn_draw *d, const tn_case *c) {
  tn_type dy, x, wide = tn_draw_type(d, d->dtype, 0, 5, true);
  draw_broadcast_pair(d, &wide, &dy, &x);
  tn_val gradient = tn_draw_tensor(d, dy, c->fill);
  tn_draw_begin(d, c->op, 2, (tn_val[]){gradient, tn_draw_tensor(d, x, c->fill)});
  tn_op_set_text(d->b, "approximate", tn_draw_flag(d) ? "tanh" : "none");
  return tn_op_end(d->b);
}

static tn_val pointwise_case_dropout(tn_draw *d, const tn_case *c) {
  static const double p[] = {0, 0.1, 0.5, 0.9, 1};
  tn_val x = tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 5, true), TN_FILL_ANY),
         iteration = tn_draw_counter(d, 0);
  tn_val block = tn_draw_flag(d) ? tn_draw_counter(d, 0) : 0;
  tn_draw_begin(d, c->op, 3, (tn_val[]){x, iteration, block});
  tn_op_set_float(d->b, "p", p[tn_draw_between(d, 0, 4)]);
  tn_op_set_int(d->b, "stream", tn_draw_between(d, 0, 1000000));
  return tn_op_end(d->b);
}

const tn_case tn_pointwise_cases[] = {
    {"neg", pointwise_case_unary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"abs", pointwise_case_unary, TN_FILL_AWAY, TN_CASE_NUMBERS},
    {"sign", pointwise_case_unary, TN_FILL_AWAY, TN_CASE_NUMBERS},
    {"exp", pointwise_case_unary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"log", pointwise_case_unary, TN_FILL_POSITIVE, TN_CASE_FLOATS},
    {"sqrt", pointwise_case_unary, TN_FILL_POSITIVE, TN_CASE_FLOATS},
    {"rsqrt", pointwise_case_unary, TN_FILL_POSITIVE, TN_CASE_FLOATS},
    {"reciprocal", pointwise_case_unary, TN_FILL_AWAY, TN_CASE_FLOATS},
    {"tanh", pointwise_case_unary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"sigmoid", pointwise_case_unary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"erf", pointwise_case_unary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"sin", pointwise_case_unary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"cos", pointwise_case_unary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"floor", pointwise_case_unary, TN_FILL_DISTINCT, TN_CASE_FLOATS},
    {"is_finite", pointwise_case_unary, TN_FILL_ANY, TN_CASE_FLOATS},
    {"add", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"sub", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"mul", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"div", pointwise_case_binary, TN_FILL_AWAY, TN_CASE_FLOATS},
    {"maximum", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"minimum", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"pow", pointwise_case_power, TN_FILL_ANY, TN_CASE_FLOATS},
    {"eq", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"ne", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"lt", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"le", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"gt", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"ge", pointwise_case_binary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"and", pointwise_case_logic, TN_FILL_BOOL, TN_CASE_FLOATS},
    {"or", pointwise_case_logic, TN_FILL_BOOL, TN_CASE_FLOATS},
    {"not", pointwise_case_logic, TN_FILL_BOOL, TN_CASE_FLOATS},
    {"where", pointwise_case_where, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"cast", pointwise_case_cast, TN_FILL_AWAY, TN_CASE_NUMBERS},
    {"affine", pointwise_case_affine, TN_FILL_ANY, TN_CASE_FLOATS},
    {"relu", pointwise_case_unary, TN_FILL_AWAY, TN_CASE_FLOATS},
    {"leaky_relu", pointwise_case_leaky_relu, TN_FILL_AWAY, TN_CASE_FLOATS},
    {"gelu", pointwise_case_gelu, TN_FILL_ANY, TN_CASE_FLOATS},
    {"gelu_grad", pointwise_case_gelu_grad, TN_FILL_ANY, TN_CASE_FLOATS},
    {"dropout", pointwise_case_dropout, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
