/* core/ops/order_statistics.c: composites of argmax, sort and topk, with the names and semantics of PyTorch:
 * extremes with their indices, elements by their rank. */
#include <math.h>

#include "core/ops/statistics.h"

typedef struct pick_options {
  int64_t axis;
  int32_t keep;
  int64_t k;
} pick_options;

/* Elements by an index that has 1 element along the axis, and that index. */
static tn_status order_pick(tn_build *b, const tn_statistic *s, tn_val index, const pick_options *o) {
  tn_type type = tn_ops_reduced(&s->x, s->reduced, o->keep), one = tn_ops_reduced(&s->x, s->reduced, true);
  index = tn_reshape(b, index, one.rank, one.dims);
  tn_val y = tn_gather(b, tn_build_in(b, 0), index, o->axis);
  tn_build_yield(b, 0, tn_reshape(b, y, type.rank, type.dims));
  tn_build_yield(b, 1, tn_reshape(b, index, type.rank, type.dims));
  return TN_OK;
}

/* x in the opposite order: -x, and -1 - x of integers, of which one has no opposite. NaN stays the largest.
 */
static tn_val order_opposite(tn_build *b, tn_val x) {
  int32_t dtype = tn_val_type(b, x)->dtype;
  return tn_dtype_is_float(dtype) ? tn_neg(b, x) : tn_sub(b, tn_scalar(b, dtype, -1), x);
}

static tn_status argmin_decompose(tn_build *b, const void *attributes) {
  const tn_axis_attributes *a = attributes;
  tn_build_yield(b, 0, tn_argmax(b, order_opposite(b, tn_build_in(b, 0)), a->axis));
  return TN_OK;
}

static tn_status order_extreme(tn_build *b, const pick_options *o, tn_val x) {
  tn_statistic s;
  TN_TRY(tn_statistic_along(b, o->axis, &s));
  return order_pick(b, &s, tn_argmax(b, x, o->axis), o);
}

static tn_status max_with_index_decompose(tn_build *b, const void *attributes) {
  return order_extreme(b, attributes, tn_build_in(b, 0));
}
static tn_status min_with_index_decompose(tn_build *b, const void *attributes) {
  return order_extreme(b, attributes, order_opposite(b, tn_build_in(b, 0)));
}

/* The index of a NaN along the axis, where there is one, in place of `index`. */
static tn_val order_nan_first(tn_build *b, const tn_statistic *s, tn_val index, int64_t axis) {
  tn_type one = tn_ops_reduced(&s->x, s->reduced, true);
  tn_val x = tn_build_in(b, 0);
  if (!tn_dtype_is_float(s->x.dtype)) return index;
  tn_val top = tn_reshape(b, tn_argmax(b, x, axis), one.rank, one.dims), largest = tn_gather(b, x, top, axis);
  return tn_where(b, tn_ne(b, largest, largest), top, index);
}

/* The k-th smallest element; k counts from 1. `middle`: the median, which is NaN where an element is. */
static tn_status order_kth(tn_build *b, const pick_options *o, bool middle) {
  tn_statistic s;
  TN_TRY(tn_statistic_along(b, o->axis, &s));
  int64_t n = (int64_t)s.count, k = middle ? (n + 1) / 2 : o->k;
  if (k < 1 || k > n)
    return tn_fail(b, TN_EINVAL, middle ? "axis" : "k", "k is %lld, expected 1 .. %lld for x of %s",
                   (long long)k, (long long)n, tn_ops_text(&s.x).v);
  tn_val index = tn_op_result(b, tn_topk(b, tn_build_in(b, 0), k, o->axis, 0), 1);
  index = tn_slice_axis(b, index, s.axis, k - 1, k);
  return order_pick(b, &s, middle ? order_nan_first(b, &s, index, o->axis) : index, o);
}

static tn_status kthvalue_decompose(tn_build *b, const void *attributes) {
  return order_kth(b, attributes, false);
}
static tn_status median_decompose(tn_build *b, const void *attributes) {
  return order_kth(b, attributes, true);
}

/* ---- of sorted elements ---- */

/* The elements along the axis from the smallest on, NaN last, and their indices. */
typedef struct order_sorted {
  tn_statistic s;
  tn_val x, index;
} order_sorted;

static tn_status order_sort(tn_build *b, int64_t axis, order_sorted *sorted) {
  TN_TRY(tn_statistic_along(b, axis, &sorted->s));
  if (sorted->s.count < 1)
    return tn_fail(b, TN_EINVAL, "axis", "x is %s: the axis has no elements", tn_ops_text(&sorted->s.x).v);
  sorted->x = tn_sort(b, tn_build_in(b, 0), axis, 0);
  sorted->index = tn_op_result(b, sorted->x, 1);
  return TN_OK;
}

/* The elements that are at the position `at`, which has 1 element along the axis, once sorted. */
static tn_status order_pick_sorted(tn_build *b, const order_sorted *sorted, tn_val at,
                                   const pick_options *o) {
  return order_pick(b, &sorted->s, tn_gather(b, sorted->index, at, sorted->s.axis), o);
}

/* Of n elements that are no NaN the one at (n - 1) / 2. */
static tn_status nanmedian_decompose(tn_build *b, const void *attributes) {
  const pick_options *o = attributes;
  order_sorted sorted;
  TN_TRY(order_sort(b, o->axis, &sorted));
  tn_val numbers = tn_to_dtype(b, tn_eq(b, sorted.x, sorted.x), TN_I32);
  tn_val n = tn_ops_reduce(b, "reduce_sum", numbers, sorted.s.reduced);
  tn_val before = tn_maximum(b, tn_sub(b, n, tn_ops_number(b, n, 1)), tn_ops_zero(b, n));
  return order_pick_sorted(b, &sorted, tn_quotient(b, before, tn_ops_number(b, n, 2)), o);
}

/* Runs of equal elements: the longest one, of which the last element is taken. */
static tn_status mode_decompose(tn_build *b, const void *attributes) {
  const pick_options *o = attributes;
  order_sorted sorted;
  TN_TRY(order_sort(b, o->axis, &sorted));
  const tn_type *x = &sorted.s.x;
  int32_t axis = sorted.s.axis;
  int64_t n = x->dims[axis];
  tn_type places = *x, one = tn_ops_reduced(x, sorted.s.reduced, true);
  places.dtype = TN_I32;
  tn_val at = tn_iota(b, &places, axis), begins = at;
  if (n > 1) {
    tn_val same =
        tn_eq(b, tn_slice_axis(b, sorted.x, axis, 1, n), tn_slice_axis(b, sorted.x, axis, 0, n - 1));
    tn_val later = tn_slice_axis(b, at, axis, 1, n);
    tn_val parts[] = {tn_slice_axis(b, at, axis, 0, 1), tn_where(b, same, tn_ops_zero(b, at), later)};
    begins = tn_cummax(b, tn_concat(b, 2, parts, axis), axis, 0);
  }
  tn_val longest = tn_argmax(b, tn_sub(b, at, begins), axis);
  return order_pick_sorted(b, &sorted, tn_reshape(b, longest, one.rank, one.dims), o);
}

/* ---- quantile ---- */

typedef struct quantile_options {
  double q;
  int64_t axis;
  int32_t keep, mode;
} quantile_options;

enum {
  QUANTILE_LINEAR = 0,
  QUANTILE_LOWER = 1,
  QUANTILE_HIGHER = 2,
  QUANTILE_MIDPOINT = 3,
  QUANTILE_NEAREST = 4
};

/* The weight of the element above a position between two. */
static double quantile_weight(double position, int32_t mode) {
  double part = position - floor(position);
  switch (mode) {
  case QUANTILE_LOWER: return 0;
  case QUANTILE_HIGHER: return part > 0;
  case QUANTILE_MIDPOINT: return part > 0 ? 0.5 : 0;
  case QUANTILE_NEAREST: return nearbyint(position) > floor(position);
  default: return part;
  }
}

static tn_status quantile_decompose(tn_build *b, const void *attributes) {
  const quantile_options *o = attributes;
  order_sorted sorted;
  TN_TRY(order_sort(b, o->axis, &sorted));
  int64_t n = (int64_t)sorted.s.count;
  double position = o->q * (double)(n - 1), weight = quantile_weight(position, o->mode);
  int64_t below = (int64_t)floor(position), above = below + (below < n - 1);
  tn_val x = tn_ops_wide(b, sorted.x), last = tn_slice_axis(b, x, sorted.s.axis, n - 1, n);
  tn_val y = tn_slice_axis(b, x, sorted.s.axis, below, below + 1);
  if (weight > 0)
    y = tn_lerp(b, y, tn_slice_axis(b, x, sorted.s.axis, above, above + 1), tn_ops_number(b, x, weight));
  sorted.s.keep = o->keep;
  return tn_statistic_yield(b, &sorted.s, tn_where(b, tn_eq(b, last, last), y, last), sorted.s.x.dtype);
}

static tn_status argsort_decompose(tn_build *b, const void *attributes) {
  const tn_sort_attributes *a = attributes;
  tn_build_yield(b, 0, tn_op_result(b, tn_sort(b, tn_build_in(b, 0), a->axis, a->descending), 1));
  return TN_OK;
}

static const tn_option argmin_rows[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "-1", NULL, "dimension to search, -rank .. rank-1"),
    TN_OPT_END};
static const tn_option argsort_rows[] = {
    TN_OPT(tn_sort_attributes, axis, TN_OPT_INT, "-1", NULL, "dimension to sort along, -rank .. rank-1"),
    TN_OPT(tn_sort_attributes, descending, TN_OPT_FLAG, "no", NULL, "the largest element first"), TN_OPT_END};

#define PICK_AXIS                                                                                            \
  TN_OPT(pick_options, axis, TN_OPT_INT, "-1", NULL, "dimension to search, -rank .. rank-1"),                \
      TN_OPT(pick_options, keep, TN_OPT_FLAG, "no", NULL, "keep the dimension as 1")
static const tn_option pick_rows[] = {PICK_AXIS, TN_OPT_END};
static const tn_option kthvalue_rows[] = {
    TN_OPT(pick_options, k, TN_OPT_INT, NULL, ">= 1", "which one; 1: the smallest"), PICK_AXIS, TN_OPT_END};

#define PICK_OP(name, doc, rows)                                                                             \
  TN_STATISTIC_OP(name, doc, pick_options, rows, "(x:T) -> (y:T, index:i32)" TN_OPS_WIDENED)
PICK_OP(max_with_index,
        "largest element along an axis, NaN if there is one, and its index, the first of equals", pick_rows);
PICK_OP(min_with_index,
        "smallest element along an axis, NaN if there is one, and its index, the first of equals", pick_rows);
PICK_OP(kthvalue, "k-th smallest element along an axis, and its index", kthvalue_rows);
PICK_OP(median, "middle element along an axis, the lower one of two, NaN if there is one, and its index",
        pick_rows);
TN_STATISTIC_OP(argmin, "index of the smallest element, the first of equals; NaN is smallest",
                tn_axis_attributes, argmin_rows, "(x:T) -> (y:i32)" TN_OPS_WIDENED, .flags = TN_OP_NONDIFF);
TN_STATISTIC_OP(argsort, "indices that sort the elements along an axis, the first of equals first",
                tn_sort_attributes, argsort_rows, "(x:T) -> (index:i32)" TN_OPS_WIDENED,
                .flags = TN_OP_NONDIFF);
PICK_OP(nanmedian,
        "middle element along an axis of those that are no NaN, the lower one of two, and its index",
        pick_rows);
PICK_OP(mode,
        "most frequent element along an axis, the smallest of those that are as frequent, and its index, the "
        "last of "
        "equals",
        pick_rows);

static const tn_option quantile_rows[] = {
    TN_OPT(quantile_options, q, TN_OPT_FLOAT, NULL, "[0, 1]", "share of the elements that are smaller"),
    TN_OPT(quantile_options, axis, TN_OPT_INT, "-1", NULL, "dimension that is reduced, -rank .. rank-1"),
    TN_OPT(quantile_options, keep, TN_OPT_FLAG, "no", NULL, "keep the dimension as 1"),
    TN_OPT(quantile_options, mode, TN_OPT_ENUM, "linear", "linear|lower|higher|midpoint|nearest",
           "value between two elements"),
    TN_OPT_END};
TN_STATISTIC_OP(quantile,
                "element along an axis below which a share q of the elements lies, NaN if there is one",
                quantile_options, quantile_rows, "(x:T) -> (y:T)" TN_OPS_FLOATS,
                .notes = "Hyndman and Fan, \"Sample quantiles in statistical packages\", 1996, type 7.");
