/* core/conformance/cases/norm.c: cases of normalization. */
#include "core/conformance/cases/cases.h"

static int32_t norm_accumulator(const tn_draw *d) { return d->dtype == TN_F64 ? TN_F64 : TN_F32; }

/* At least two elements per channel: the variance of one element is at the kink of its clamp at 0. */
static tn_type draw_norm_batch(tn_draw *d) {
  tn_type t = tn_draw_type(d, d->dtype, 2, 5, false);
  if (t.dims[0] < 2) t.dims[0] = 2;
  return t;
}

static tn_val draw_norm_row(tn_draw *d, const tn_type *row, int32_t fill) {
  return tn_draw_flag(d) ? tn_draw_tensor(d, *row, fill) : 0;
}

static tn_val norm_case_batch_norm(tn_draw *d, const tn_case *c) {
  tn_type t = draw_norm_batch(d), row = tn_draw_type_of(norm_accumulator(d), 1, t.dims + 1);
  tn_val x = tn_draw_tensor(d, t, c->fill), weight = draw_norm_row(d, &row, TN_FILL_ANY),
         bias = draw_norm_row(d, &row, TN_FILL_ANY);
  tn_draw_begin(d, c->op, 3, (tn_val[]){x, weight, bias});
  /* The variance is squares / n - mean^2, which cancels in f32 where it is far below mean^2. A large epsilon
   * bounds the error of the result. */
  if (d->dtype != TN_F64 || tn_draw_flag(d)) tn_op_set_float(d->b, "epsilon", 0.1);
  return tn_op_end(d->b);
}

static tn_val norm_case_batch_norm_apply(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 2, 5, true),
          row = tn_draw_type_of(norm_accumulator(d), 1, t.dims + 1);
  tn_val x = tn_draw_tensor(d, t, c->fill), mean = tn_draw_tensor(d, row, TN_FILL_ANY);
  tn_val variance = tn_draw_tensor(d, row, TN_FILL_POSITIVE);
  tn_val weight = draw_norm_row(d, &row, TN_FILL_ANY), bias = draw_norm_row(d, &row, TN_FILL_ANY);
  tn_draw_begin(d, c->op, 5, (tn_val[]){x, mean, variance, weight, bias});
  return tn_op_end(d->b);
}

typedef struct norm_operands {
  tn_val x, weight, bias;
  int64_t trailing;
} norm_operands;

static norm_operands draw_norm_operands(tn_draw *d, int32_t fill) {
  tn_type t = tn_draw_type(d, d->dtype, 1, 5, false);
  norm_operands l = {.trailing = tn_draw_between(d, 1, t.rank)};
  if (tn_draw_between(d, 0, 7) == 0 && l.trailing < t.rank) t.dims[0] = 0;
  tn_type row = tn_draw_type_of(norm_accumulator(d), (int32_t)l.trailing, t.dims + t.rank - l.trailing);
  l.x = tn_draw_tensor(d, t, fill);
  l.weight = draw_norm_row(d, &row, TN_FILL_ANY);
  l.bias = draw_norm_row(d, &row, TN_FILL_ANY);
  return l;
}

static tn_val emit_layer_norm(tn_draw *d, const norm_operands *l) {
  tn_draw_begin(d, "layer_norm", 3, (tn_val[]){l->x, l->weight, l->bias});
  tn_op_set_int(d->b, "trailing", l->trailing);
  /* A large epsilon keeps rows of one or two close elements smooth enough for finite differences. */
  tn_op_set_float(d->b, "epsilon", 0.1);
  return tn_op_end(d->b);
}

static tn_val norm_case_layer_norm(tn_draw *d, const tn_case *c) {
  norm_operands l = draw_norm_operands(d, c->fill);
  return emit_layer_norm(d, &l);
}

/* On the statistics of layer_norm. */
static tn_val norm_case_layer_norm_grad(tn_draw *d, const tn_case *c) {
  norm_operands l = draw_norm_operands(d, c->fill);
  tn_val y = emit_layer_norm(d, &l), dy = tn_draw_tensor(d, *tn_val_type(d->b, y), c->fill);
  tn_draw_begin(d, c->op, 5,
                (tn_val[]){dy, l.x, tn_op_result(d->b, y, 1), tn_op_result(d->b, y, 2), l.weight});
  tn_op_set_int(d->b, "trailing", l.trailing);
  return tn_op_end(d->b);
}

/* A large epsilon, as in the cases of layer_norm. */
static tn_val norm_case_rms_norm(tn_draw *d, const tn_case *c) {
  norm_operands l = draw_norm_operands(d, c->fill);
  return tn_rms_norm(d->b, l.x, l.weight, 0.1, l.trailing);
}

static tn_val norm_case_group_norm(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 2, 5, false);
  int64_t groups = tn_draw_between(d, 1, 3);
  t.dims[1] *= groups;
  tn_type row = tn_draw_type_of(norm_accumulator(d), 1, t.dims + 1);
  tn_val x = tn_draw_tensor(d, t, c->fill), weight = draw_norm_row(d, &row, TN_FILL_ANY),
         bias = draw_norm_row(d, &row, TN_FILL_ANY);
  return tn_group_norm(d->b, x, weight, bias, 0.1, groups);
}

static tn_val norm_case_local_response_norm(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 2, 5, false);
  tn_val x = tn_draw_tensor(d, t, c->fill);
  int64_t size = tn_draw_between(d, 1, 6);
  return tn_local_response_norm(d->b, x, size, tn_rng_between(&d->rng, 0.1, 2), 0.75,
                                tn_rng_between(&d->rng, 0.5, 2));
}

const tn_case tn_norm_cases[] = {
    {"batch_norm", norm_case_batch_norm, TN_FILL_ANY, TN_CASE_FLOATS},
    {"batch_norm_apply", norm_case_batch_norm_apply, TN_FILL_ANY, TN_CASE_FLOATS},
    {"layer_norm", norm_case_layer_norm, TN_FILL_ANY, TN_CASE_FLOATS},
    {"layer_norm_grad", norm_case_layer_norm_grad, TN_FILL_ANY, TN_CASE_FLOATS, .wide_gradient = true},
    {"rms_norm", norm_case_rms_norm, TN_FILL_ANY, TN_CASE_FLOATS},
    {"group_norm", norm_case_group_norm, TN_FILL_ANY, TN_CASE_FLOATS},
    {"local_response_norm", norm_case_local_response_norm, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
