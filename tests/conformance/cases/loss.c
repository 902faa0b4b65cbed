/* Cases of softmax and cross entropy. */
#include "../cases.h"

static tn_val softmax(draw *d, const conformance_case *c) {
  tn_type t = draw_type(d, d->dtype, 1, 5, true);
  tn_val x = draw_tensor(d, t, c->fill);
  tn_begin(d->b, c->op);
  tn_arg(d->b, x);
  tn_set_int(d->b, "axis", draw_between(d, -t.rank, t.rank - 1));
  return tn_end(d->b);
}

/* One of the classes, or the number that is ignored, is drawn as a target. */
static tn_val cross_entropy(draw *d, const conformance_case *c) {
  tn_type t = draw_type(d, d->dtype, 1, 4, false), rows = {draw_flag(d) ? TN_I64 : TN_I32, 0, {0}};
  int64_t axis = draw_between(d, 0, t.rank - 1), classes = t.dims[axis];
  if (t.rank > 1 && draw_between(d, 0, 7) == 0) t.dims[axis == 0 ? 1 : 0] = 0;
  for (int32_t i = 0; i < t.rank; i++)
    if (i != axis) rows.dims[rows.rank++] = t.dims[i];
  bool below = draw_flag(d);
  tn_val logits = draw_tensor(d, t, c->fill), target = draw_whole(d, rows, below ? -1 : 0, classes);
  tn_begin(d->b, c->op);
  tn_arg(d->b, logits);
  tn_arg(d->b, target);
  tn_set_int(d->b, "axis", draw_flag(d) ? axis : axis - t.rank);
  tn_set_int(d->b, "ignore", below ? -1 : draw_between(d, 0, classes));
  if (draw_flag(d)) tn_set_float(d->b, "smoothing", tn_rng_between(&d->rng, 0, 1));
  return tn_end(d->b);
}

const conformance_case loss_cases[] = {
    {"softmax", softmax, FILL_ANY, CASE_FLOATS},
    {"log_softmax", softmax, FILL_ANY, CASE_FLOATS},
    {"cross_entropy", cross_entropy, FILL_ANY, CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
