/* core/conformance/cases/pointwise.c: the pointwise ops whose schema does not say which operands fit,
 * dropout, and rounding to few numbers. */
#include "core/conformance/cases/schema_case.h"

static tn_val pointwise_case_cast(tn_draw *d, const tn_case *c) {
  static const int32_t to[] = {TN_BOOL, TN_U8,  TN_I8,  TN_I32, TN_I64,
                               TN_F32,  TN_F64, TN_F64, TN_F16, TN_BF16};
  bool floats = d->dtype == TN_F64; /* finite differences need a cast that does not round */
  tn_op_begin(d->b, c->op);
  tn_op_arg(d->b, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 4, true), TN_FILL_AWAY));
  tn_op_set_text(d->b, "to", tn_dtype_name(floats ? TN_F64 : to[tn_draw_between(d, 0, 9)]));
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

/* Ranges for which the numbers are whole, so that no rounding of a kernel moves x to another one. */
static tn_val pointwise_case_fake_quantize(tn_draw *d, const tn_case *c) {
  int64_t bits = tn_draw_between(d, 2, 3), last = (1 << bits) - 1, zero = tn_draw_between(d, 0, last);
  const tn_type scalar = {d->dtype, 0, {0}};
  tn_val x = tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 4, true), TN_FILL_ANY);
  tn_val low = tn_draw_integers(d, scalar, -zero, 1 - zero);
  tn_val high = tn_draw_integers(d, scalar, last - zero, last - zero + 1);
  bool is_empty = tn_draw_between(d, 0, 7) == 0; /* low above high */
  tn_draw_begin(d, c->op, 3, (tn_val[]){x, is_empty ? high : low, is_empty ? low : high});
  tn_op_set_int(d->b, "bits", bits);
  return tn_op_end(d->b);
}

/* Of 2 bits, the scale is the largest element, and quotients are not near a tie. */
static tn_val pointwise_case_fake_quantize_channels(tn_draw *d, const tn_case *c) {
  tn_type type = tn_draw_type(d, d->dtype, 1, 4, false);
  tn_draw_begin(d, c->op, 1, (tn_val[]){tn_draw_tensor(d, type, TN_FILL_ANY)});
  tn_op_set_int(d->b, "bits", 2);
  tn_op_set_int(d->b, "axis", tn_draw_between(d, -type.rank, type.rank - 1));
  return tn_op_end(d->b);
}

const tn_case tn_pointwise_cases[] = {
    {"cast", pointwise_case_cast, TN_FILL_AWAY, TN_CASE_NUMBERS},
    {"dropout", pointwise_case_dropout, TN_FILL_ANY, TN_CASE_FLOATS},
    {"fake_quantize", pointwise_case_fake_quantize, TN_FILL_ANY, TN_CASE_FLOATS, .straight_through = true},
    {"fake_quantize_channels", pointwise_case_fake_quantize_channels, TN_FILL_ANY, TN_CASE_FLOATS,
     .straight_through = true},
    {"log", tn_schema_emit, .domain = "x [0.1, 4]"},
    {"reciprocal", tn_schema_emit, .domain = "x [0.1, 4]"},
    {"tan", tn_schema_emit, .domain = "x [-1.5, 1.5]"},
    {"sinc", tn_schema_emit, .domain = "x [0.1, 4]"},
    {"div", tn_schema_emit, .domain = "y [0.1, 4]"},
    {"fmod", tn_schema_emit, .dtypes = TN_CASE_NUMBERS, .domain = "x [0.1, 4]; y [0.7, 4]"},
    {"remainder", tn_schema_emit, .dtypes = TN_CASE_NUMBERS, .domain = "x [0.1, 4]; y [0.7, 4]"},
    {"pow", tn_schema_emit, .domain = "x [0.5, 2]"},
    {"atan2", tn_schema_emit, .domain = "x [0.1, 4]"},
    {"hypot", tn_schema_emit, .domain = "x [0.1, 4]"},
    {"gelu_grad", tn_schema_emit,
     .forward_only = true}, /* its gradient is compared with differences, in f64 */
    {NULL, NULL, 0, 0},
};
