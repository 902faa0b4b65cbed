/* core/conformance/cases/fill.c: cases of ops that make constants, indices or random numbers. */
#include "core/conformance/cases/cases.h"

static void fill_case_set_dims(tn_draw *d, const tn_type *t) {
  tn_op_set_ints(d->b, "dims", t->rank, t->dims);
}

static tn_val fill_case_full(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 0, 5, true);
  (void)c;
  return tn_full(d->b, &t, (double)tn_draw_between(d, -5, 5) + (tn_dtype_is_float(d->dtype) ? 0.25 : 0));
}

static tn_val fill_case_iota(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 1, 5, true);
  tn_op_begin(d->b, c->op);
  fill_case_set_dims(d, &t);
  tn_op_set_int(d->b, "axis", tn_draw_between(d, -t.rank, t.rank - 1));
  tn_op_set_text(d->b, "dtype", tn_dtype_name(d->dtype));
  return tn_op_end(d->b);
}

static tn_val fill_case_broadcast(tn_draw *d, const tn_case *c) {
  tn_type wide = tn_draw_type(d, d->dtype, 0, 6, true);
  return tn_broadcast(d->b, tn_draw_tensor(d, tn_draw_narrower(d, &wide), c->fill), wide.rank, wide.dims);
}

/* Ranges of any length, also empty, also beyond the end. */
static tn_val fill_case_spread(tn_draw *d, const tn_case *c) {
  int64_t starts[6] = {0}, index[6], n = tn_draw_between(d, 1, 6), values = tn_draw_between(d, 1, 4);
  for (int64_t i = 1; i < n; i++) starts[i] = starts[i - 1] + tn_draw_between(d, 0, 6);
  for (int64_t i = 0; i < n; i++) index[i] = tn_draw_between(d, 0, values - 1);
  tn_val v = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 1, &values), c->fill);
  tn_draw_begin(d, c->op, 1, &v);
  tn_op_set_ints(d->b, "starts", n, starts);
  tn_op_set_ints(d->b, "index", n, index);
  tn_op_set_int(d->b, "count", tn_draw_between(d, 0, 25));
  return tn_op_end(d->b);
}

static tn_val fill_case_triangular_mask(tn_draw *d, const tn_case *c) {
  tn_op_begin(d->b, c->op);
  tn_op_set_int(d->b, "rows", tn_draw_between(d, 0, 6));
  tn_op_set_int(d->b, "columns", tn_draw_between(d, 0, 6));
  tn_op_set_int(d->b, "diagonal", tn_draw_between(d, -7, 7));
  return tn_op_end(d->b);
}

static tn_val fill_case_random(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 0, 5, true);
  tn_val iteration = tn_draw_counter(d, 0), block = tn_draw_flag(d) ? tn_draw_counter(d, 0) : 0;
  tn_draw_begin(d, c->op, 2, (tn_val[]){iteration, block});
  fill_case_set_dims(d, &t);
  tn_op_set_int(d->b, "stream", tn_draw_between(d, -1000000, 1000000));
  tn_op_set_float(d->b, "a", tn_rng_between(&d->rng, -2, 0));
  tn_op_set_float(d->b, "b", tn_rng_between(&d->rng, 0, 2));
  tn_op_set_text(d->b, "dtype", tn_dtype_name(d->dtype));
  return tn_op_end(d->b);
}

const tn_case tn_fill_cases[] = {
    {"full", fill_case_full, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"iota", fill_case_iota, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"broadcast", fill_case_broadcast, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"spread", fill_case_spread, TN_FILL_ANY, TN_CASE_FLOATS},
    {"triangular_mask", fill_case_triangular_mask, TN_FILL_ANY, TN_CASE_FLOATS},
    {"random_uniform", fill_case_random, TN_FILL_ANY, TN_CASE_FLOATS},
    {"random_normal", fill_case_random, TN_FILL_ANY, TN_CASE_FLOATS},
    {NULL, NULL, 0, 0},
};
