/* core/conformance/cases/index.c: cases of ops that go along an axis: indices, sorts, running sums. */
#include <string.h>

#include "core/conformance/cases/cases.h"

/* A tensor, elements along one of its axes, and the index that names them. */
typedef struct index_draw {
  tn_type x, reach;
  int64_t axis; /* of either sign */
  tn_val index;
} index_draw;

/* The index has the rank of x, and is mostly smaller, or it is a vector. */
static index_draw draw_index(tn_draw *d) {
  index_draw w = {.x = tn_draw_type(d, d->dtype, 1, 5, false)};
  int64_t axis = tn_draw_between(d, 0, w.x.rank - 1), size = tn_draw_size(d, 0, 5);
  tn_type index = {tn_draw_flag(d) ? TN_I64 : TN_I32, 1, {size}};
  bool vector = tn_draw_flag(d);
  w.reach = w.x;
  for (int32_t i = 0; i < w.x.rank && !vector; i++)
    if (tn_draw_between(d, 0, 3) == 0) w.reach.dims[i] = tn_draw_between(d, 0, w.x.dims[i]);
  w.reach.dims[axis] = size;
  if (!vector) index = tn_draw_type_of(index.dtype, w.x.rank, w.reach.dims);
  w.axis = tn_draw_flag(d) ? axis : axis - w.x.rank;
  w.index = tn_draw_integers(d, index, 0, w.x.dims[axis]);
  return w;
}

static tn_val index_case_gather(tn_draw *d, const tn_case *c) {
  index_draw w = draw_index(d);
  tn_val x = tn_draw_tensor(d, w.x, c->fill);
  return tn_gather(d->b, x, w.index, w.axis);
}

/* Distinct numbers keep finite differences away from ties of the modes max and min. */
static tn_val index_case_scatter(tn_draw *d, const tn_case *c) {
  index_draw w = draw_index(d);
  tn_val x = tn_draw_tensor(d, w.x, c->fill), updates = tn_draw_tensor(d, w.reach, TN_FILL_ANY);
  return tn_scatter(d->b, x, w.index, updates, w.axis, (int32_t)tn_draw_between(d, 0, TN_SCATTER_SET));
}

/* Half of the large shapes have a dimension beyond the tiles of kernels. */
static tn_type draw_axis_type(tn_draw *d, int64_t most) {
  const int64_t dims[] = {tn_draw_between(d, 1, 3), tn_draw_between(d, 30, most)},
                swapped[] = {dims[1], dims[0]};
  if (!d->large || tn_draw_flag(d)) return tn_draw_type(d, d->dtype, 1, 4, true);
  return tn_draw_type_of(d->dtype, 2, tn_draw_flag(d) ? dims : swapped);
}

static tn_val index_case_sort(tn_draw *d, const tn_case *c) {
  tn_type t = draw_axis_type(d, 2600);
  bool equal = !tn_dtype_is_float(d->dtype) || (!d->exact && tn_draw_flag(d));
  tn_val x = equal ? tn_draw_integers(d, t, -4, 5) : tn_draw_tensor(d, t, c->fill);
  int64_t axis = tn_draw_between(d, -t.rank, t.rank - 1), n = t.dims[axis < 0 ? axis + t.rank : axis];
  if (strcmp(c->op, "sort") == 0) return tn_sort(d->b, x, axis, tn_draw_flag(d));
  return tn_topk(d->b, x, tn_draw_between(d, 0, tn_draw_flag(d) ? n : n / 9), axis, tn_draw_flag(d));
}

static tn_val index_case_cumulative(tn_draw *d, const tn_case *c) {
  tn_type t = draw_axis_type(d, 1400);
  int32_t mode = (int32_t)tn_draw_between(
      d, 0, tn_dtype_is_float(d->dtype) ? TN_CUMULATIVE_LOGSUMEXP : TN_CUMULATIVE_MIN);
  if (mode == TN_CUMULATIVE_PROD) t = tn_draw_type(d, d->dtype, 1, 4, true);
  bool extreme = mode == TN_CUMULATIVE_MAX || mode == TN_CUMULATIVE_MIN;
  tn_val x = tn_draw_tensor(d, t, extreme ? TN_FILL_DISTINCT : c->fill);
  int64_t axis = tn_draw_between(d, -t.rank, t.rank - 1);
  return tn_cumulative(d->b, x, axis, mode, mode <= TN_CUMULATIVE_PROD && tn_draw_flag(d), tn_draw_flag(d));
}

const tn_case tn_index_cases[] = {
    {"gather", index_case_gather, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"scatter", index_case_scatter, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"sort", index_case_sort, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"topk", index_case_sort, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"cumulative", index_case_cumulative, TN_FILL_ANY, TN_CASE_NUMBERS},
    {NULL, NULL, 0, 0},
};
