/* core/conformance/cases/loss.c: cases of softmax and cross entropy. */
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

const tn_case tn_loss_cases[] = {
    {"softmax", loss_case_softmax, TN_FILL_ANY, TN_CASE_FLOATS},
    {"log_softmax", loss_case_softmax, TN_FILL_ANY, TN_CASE_FLOATS},
    {"cross_entropy", loss_case_cross_entropy, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
