/* core/conformance/reference/index.c: ops of the reference that go along an axis: indices, sorts, running
 * sums. */
#include <math.h>

#include "core/conformance/reference/reference.h"
#include "tenon/attributes.h"

/* The element of `wide` that the index names for element i of `reach`. */
static int64_t reference_indexed(const tn_reference_call *c, const tn_type *wide, const tn_type *reach,
                                 int64_t axis, int64_t i) {
  int64_t at[TN_MAX_RANK] = {0};
  bool vector = c->in[1]->rank != wide->rank;
  axis = tn_reference_axis(axis, wide);
  tn_reference_unflatten(reach, i, at);
  at[axis] = (int64_t)c->x[1][vector ? at[axis] : i];
  return tn_reference_flatten(wide, at);
}

static void reference_gather(const tn_reference_call *c) {
  const tn_axis_attributes *a = c->attributes;
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++)
    c->y[0][i] = c->x[0][reference_indexed(c, c->in[0], c->out[0], a->axis, i)];
}

/* Row-major order is the order along every axis. */
static void reference_scatter(const tn_reference_call *c) {
  const tn_scatter_attributes *a = c->attributes;
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) c->y[0][i] = c->x[0][i];
  for (int64_t i = 0; i < tn_type_count(c->in[2]); i++) {
    double update = c->x[2][i], *to = &c->y[0][reference_indexed(c, c->out[0], c->in[2], a->axis, i)];
    bool taken = update != update || a->mode == TN_SCATTER_SET ||
                 (a->mode == TN_SCATTER_MAX && update > *to) || (a->mode == TN_SCATTER_MIN && update < *to);
    if (a->mode == TN_SCATTER_ADD)
      *to += update;
    else if (taken)
      *to = update;
  }
}

/* ---- sort ---- */

static bool reference_is_before(double x, double y, bool descending) {
  bool x_nan = x != x, y_nan = y != y;
  if (x_nan || y_nan) return descending ? x_nan && !y_nan : y_nan && !x_nan;
  return descending ? x > y : x < y;
}

/* Moves each element in front of those that it is before. */
static void reference_sort(const tn_reference_call *c) {
  const tn_sort_attributes *a = c->attributes;
  const tn_type *x = c->in[0];
  int64_t axis = tn_reference_axis(a->axis, x), inner = tn_reference_stride(x, axis), n = x->dims[axis];
  for (int64_t i = 0; i < tn_type_count(x); i++) {
    int64_t place = i / inner % n, base = i - place * inner;
    double *y = c->y[0] + base, *index = c->y[1] + base, value = c->x[0][i];
    for (; place > 0 && reference_is_before(value, y[(place - 1) * inner], a->descending); place--) {
      y[place * inner] = y[(place - 1) * inner];
      index[place * inner] = index[(place - 1) * inner];
    }
    y[place * inner] = value;
    index[place * inner] = (double)(i / inner % n);
  }
}

/* ---- cumulative ---- */

static double reference_log_add(double x, double y) {
  if (x != x || y != y) return NAN;
  if (x == y) return x + log(2);
  return fmax(x, y) + log(exp(-fabs(x - y)) + 1);
}

static double reference_accumulate(int32_t mode, double sum, double x) {
  switch (mode) {
  case TN_CUMULATIVE_SUM: return sum + x;
  case TN_CUMULATIVE_PROD: return sum * x;
  case TN_CUMULATIVE_MAX: return x != x || x > sum ? x : sum;
  case TN_CUMULATIVE_MIN: return x != x || x < sum ? x : sum;
  default: return reference_log_add(sum, x);
  }
}

static void reference_cumulative(const tn_reference_call *c) {
  static const double start[] = {0, 1, -INFINITY, INFINITY, -INFINITY};
  const tn_cumulative_attributes *a = c->attributes;
  const tn_type *x = c->in[0];
  int64_t axis = tn_reference_axis(a->axis, x), inner = tn_reference_stride(x, axis), n = x->dims[axis];
  for (int64_t i = 0; i < tn_type_count(x); i++) {
    if (i / inner % n != 0) continue;
    double sum = start[a->mode];
    for (int64_t k = 0; k < n; k++) {
      int64_t at = i + (a->reverse ? n - 1 - k : k) * inner;
      double before = sum;
      sum = reference_accumulate(a->mode, sum, c->x[0][at]);
      c->y[0][at] = a->exclusive ? before : sum;
    }
  }
}

const tn_reference_op tn_reference_index_ops[] = {TN_REFERENCE_OP(gather),
                                                  TN_REFERENCE_OP(scatter),
                                                  TN_REFERENCE_OP(sort),
                                                  TN_REFERENCE_OP(cumulative),
                                                  {NULL, NULL}};
