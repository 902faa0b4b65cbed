/* core/conformance/cases/loss.c: cases of softmax, cross entropy and alignments. */
#include <string.h>

#include "core/conformance/cases/cases.h"

static tn_val loss_case_softmax(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 1, 5, true);
  tn_val x = tn_draw_tensor(d, t, c->fill);
  tn_draw_begin(d, c->op, 1, &x);
  tn_op_set_int(d->b, "axis", tn_draw_between(d, -t.rank, t.rank - 1));
  return tn_op_end(d->b);
}

/* Targets are classes or the ignored number. */
static tn_val loss_case_cross_entropy(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 1, 4, false), rows = {tn_draw_flag(d) ? TN_I64 : TN_I32, 0, {0}};
  int64_t axis = tn_draw_between(d, 0, t.rank - 1), classes = t.dims[axis];
  if (t.rank > 1 && tn_draw_between(d, 0, 7) == 0) t.dims[axis == 0 ? 1 : 0] = 0;
  for (int32_t i = 0; i < t.rank; i++)
    if (i != axis) rows.dims[rows.rank++] = t.dims[i];
  bool below = tn_draw_flag(d);
  tn_val logits = tn_draw_tensor(d, t, c->fill), target = tn_draw_integers(d, rows, below ? -1 : 0, classes);
  tn_draw_begin(d, c->op, 2, (tn_val[]){logits, target});
  tn_op_set_int(d->b, "axis", tn_draw_flag(d) ? axis : axis - t.rank);
  tn_op_set_int(d->b, "ignore", below ? -1 : tn_draw_between(d, 0, classes));
  if (tn_draw_flag(d)) tn_op_set_float(d->b, "smoothing", tn_rng_between(&d->rng, 0, 1));
  return tn_op_end(d->b);
}

/* The reference goes along each path, so there are few steps and states. */
static tn_val loss_case_alignment(tn_draw *d, const tn_case *c) {
  static const tn_range near = {-4, 4, false, false};
  int64_t dims[] = {tn_draw_size(d, 0, 3), tn_draw_between(d, 1, 5), tn_draw_between(d, 1, 6)};
  bool finite = d->exact; /* there is a path */
  if (finite && dims[2] > dims[1]) dims[2] = dims[1];
  const int64_t rows[] = {dims[0], dims[2]};
  tn_val in[5];
  in[0] = tn_draw_domain(d, tn_draw_type_of(d->dtype, 3, dims), near);
  in[1] = tn_draw_integers(d, tn_draw_type_of(TN_BOOL, 2, rows), 0, 2);
  in[2] = tn_draw_integers(d, tn_draw_type_of(TN_I32, 1, rows), finite ? dims[1] : 0, dims[1] + 1);
  in[3] = tn_draw_integers(d, tn_draw_type_of(TN_I32, 1, rows), finite, dims[2] + 1);
  bool gradient = strcmp(c->op, "alignment_grad") == 0;
  if (gradient) in[4] = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 1, rows), c->fill);
  tn_draw_begin(d, c->op, gradient ? 5 : 4, in);
  return tn_op_end(d->b);
}

const tn_case tn_loss_cases[] = {
    {"softmax", loss_case_softmax, TN_FILL_ANY, TN_CASE_FLOATS},
    {"log_softmax", loss_case_softmax, TN_FILL_ANY, TN_CASE_FLOATS},
    {"alignment", loss_case_alignment, TN_FILL_ANY, TN_CASE_FLOATS},
    {"alignment_grad", loss_case_alignment, TN_FILL_ANY, TN_CASE_FLOATS},
    {"cross_entropy", loss_case_cross_entropy, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
