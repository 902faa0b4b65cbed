/* core/ops/shape.c: composites that insert, drop, reorder and repeat dimensions and their elements, with the
 * names and semantics of PyTorch. Their types follow from their decompositions. */
#include "core/ops/common.h"

/* ---- options that several ops have ---- */

typedef struct shape_axes_options {
  tn_ints axes;
} shape_axes_options;

#define SHAPE_AXIS(S, text) TN_OPT(S, axis, TN_OPT_INT, NULL, NULL, text)

static tn_status shape_yield(tn_build *b, tn_val y) {
  tn_build_yield(b, 0, y);
  return TN_OK;
}

/* ---- unsqueeze, squeeze, expand ---- */

static tn_val shape_unsqueeze(tn_build *b, tn_val x, int32_t axis) {
  tn_type type = tn_ops_type(b, x);
  int64_t dims[TN_MAX_RANK + 1], n = 0;
  for (int32_t i = 0; i <= type.rank; i++) {
    if (i == axis) dims[n++] = 1;
    if (i < type.rank) dims[n++] = type.dims[i];
  }
  return tn_reshape(b, x, n, dims);
}

static tn_status unsqueeze_decompose(tn_build *b, const void *attributes) {
  const tn_axis_attributes *o = attributes;
  tn_val x = tn_build_in(b, 0);
  int32_t axis;
  TN_TRY(tn_ops_check_axis(b, o->axis, tn_val_type(b, x)->rank + 1, &axis));
  return shape_yield(b, shape_unsqueeze(b, x, axis));
}

/* An axis of another size than 1 stays, as in PyTorch. */
static tn_status squeeze_decompose(tn_build *b, const void *attributes) {
  const shape_axes_options *o = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  int64_t dims[TN_MAX_RANK], n = 0;
  bool chosen[TN_MAX_RANK];
  TN_TRY(tn_ops_check_axes(b, &o->axes, x.rank, chosen));
  for (int32_t i = 0; i < x.rank; i++)
    if (!chosen[i] || x.dims[i] != 1) dims[n++] = x.dims[i];
  return shape_yield(b, tn_reshape(b, tn_build_in(b, 0), n, dims));
}

static tn_status expand_decompose(tn_build *b, const void *attributes) {
  const tn_broadcast_attributes *o = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  int64_t dims[TN_MAX_RANK], lead = o->dims.n - x.rank;
  if (lead < 0 || o->dims.n > TN_MAX_RANK)
    return tn_fail(b, TN_EINVAL, "dims", "dims has %lld entries, expected %d .. %d for x of %s",
                   (long long)o->dims.n, (int)x.rank, (int)TN_MAX_RANK, tn_ops_text(&x).v);
  for (int64_t i = 0; i < o->dims.n; i++)
    dims[i] = o->dims.v[i] == -1 && i >= lead ? x.dims[i - lead] : o->dims.v[i];
  return shape_yield(b, tn_broadcast(b, tn_build_in(b, 0), o->dims.n, dims));
}

/* ---- orders of dimensions ---- */

typedef struct swapaxes_options {
  int64_t axis0, axis1;
} swapaxes_options;

static tn_status swapaxes_decompose(tn_build *b, const void *attributes) {
  const swapaxes_options *o = attributes;
  int32_t rank = tn_val_type(b, tn_build_in(b, 0))->rank, first, second;
  int64_t order[TN_MAX_RANK];
  TN_TRY(tn_ops_axis_of_x(b, o->axis0, &first));
  TN_TRY(tn_ops_axis_of_x(b, o->axis1, &second));
  for (int32_t i = 0; i < rank; i++) order[i] = i == first ? second : i == second ? first : i;
  return shape_yield(b, tn_transpose(b, tn_build_in(b, 0), rank, order));
}

typedef struct movedim_options {
  tn_ints source, destination;
} movedim_options;

/* Moved dimensions go to their places, the others fill the rest in their order. */
static tn_val shape_move(tn_build *b, tn_val x, int64_t n, const int64_t *source,
                         const int64_t *destination) {
  int32_t rank = tn_val_type(b, x)->rank, next = 0;
  int64_t order[TN_MAX_RANK];
  bool moved[TN_MAX_RANK] = {false};
  for (int32_t i = 0; i < rank; i++) order[i] = -1;
  for (int64_t k = 0; k < n; k++) {
    order[tn_ops_axis(destination[k], rank)] = tn_ops_axis(source[k], rank);
    moved[tn_ops_axis(source[k], rank)] = true;
  }
  for (int32_t i = 0; i < rank; i++) {
    while (next < rank && moved[next]) next++;
    if (order[i] < 0) order[i] = next++;
  }
  return tn_transpose(b, x, rank, order);
}

static tn_status movedim_decompose(tn_build *b, const void *attributes) {
  const movedim_options *o = attributes;
  int32_t rank = tn_val_type(b, tn_build_in(b, 0))->rank;
  bool seen[TN_MAX_RANK];
  if (o->source.n != o->destination.n)
    return tn_fail(b, TN_EINVAL, "destination",
                   "destination has %lld entries and source %lld, expected as many",
                   (long long)o->destination.n, (long long)o->source.n);
  TN_TRY(tn_ops_check_axes(b, &o->source, rank, seen));
  TN_TRY(tn_ops_check_axes(b, &o->destination, rank, seen));
  return shape_yield(b, shape_move(b, tn_build_in(b, 0), o->source.n, o->source.v, o->destination.v));
}

/* ---- parts ---- */

typedef struct narrow_options {
  int64_t axis, start, length;
} narrow_options;

static tn_status narrow_decompose(tn_build *b, const void *attributes) {
  const narrow_options *o = attributes;
  int32_t axis;
  TN_TRY(tn_ops_axis_of_x(b, o->axis, &axis));
  int64_t n = tn_val_dim(b, tn_build_in(b, 0), axis), start = o->start < 0 ? o->start + n : o->start;
  if (start < 0 || o->length < 0 || start > n - o->length)
    return tn_fail(b, TN_EINVAL, "length", "elements %lld .. %lld, but dimension %d has %lld",
                   (long long)start, (long long)(start + o->length - 1), (int)axis, (long long)n);
  return shape_yield(b, tn_slice_axis(b, tn_build_in(b, 0), axis, start, start + o->length));
}

typedef struct select_options {
  int64_t axis, index;
} select_options;

static tn_status select_decompose(tn_build *b, const void *attributes) {
  const select_options *o = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  int32_t axis;
  TN_TRY(tn_ops_axis_of_x(b, o->axis, &axis));
  int64_t n = x.dims[axis], at = o->index < 0 ? o->index + n : o->index;
  bool reduced[TN_MAX_RANK] = {false};
  reduced[axis] = true;
  tn_type y = tn_ops_reduced(&x, reduced, false);
  if (at < 0 || at >= n)
    return tn_fail(b, TN_EINVAL, "index", "index is %lld, expected %lld .. %lld for dimension %d of x, %s",
                   (long long)o->index, (long long)-n, (long long)n - 1, (int)axis, tn_ops_text(&x).v);
  tn_val part = tn_slice_axis(b, tn_build_in(b, 0), axis, at, at + 1);
  return shape_yield(b, tn_reshape(b, part, y.rank, y.dims));
}

static tn_status stack_decompose(tn_build *b, const void *attributes) {
  const tn_axis_attributes *o = attributes;
  int32_t axis, n = tn_build_n_in(b);
  if (n < 1) return tn_fail(b, TN_EINVAL, NULL, "no operands, expected at least one");
  TN_TRY(tn_ops_check_axis(b, o->axis, tn_val_type(b, tn_build_in(b, 0))->rank + 1, &axis));
  tn_val *parts = tn_new(b, (size_t)n * sizeof *parts);
  if (parts == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) parts[i] = shape_unsqueeze(b, tn_build_in(b, i), axis);
  tn_build_yield(b, 0, tn_concat(b, n, parts, axis));
  tn_delete(b, parts);
  return TN_OK;
}

/* ---- flip, roll ---- */

static tn_status flip_decompose(tn_build *b, const void *attributes) {
  const shape_axes_options *o = attributes;
  tn_val y = tn_build_in(b, 0);
  tn_type x = tn_ops_type(b, y);
  bool chosen[TN_MAX_RANK];
  tn_status status = tn_ops_check_axes(b, &o->axes, x.rank, chosen);
  for (int32_t i = 0; i < x.rank && status == TN_OK; i++) {
    if (!chosen[i] || x.dims[i] < 2) continue;
    const tn_type vector = {TN_I32, 1, {x.dims[i]}};
    tn_val last = tn_scalar(b, TN_I32, (double)(x.dims[i] - 1));
    y = tn_gather(b, y, tn_sub(b, last, tn_iota(b, &vector, 0)), i);
  }
  return status != TN_OK ? status : shape_yield(b, y);
}

typedef struct roll_options {
  tn_ints shifts, axes;
} roll_options;

static tn_val shape_roll(tn_build *b, tn_val x, int32_t axis, int64_t shift) {
  int64_t n = tn_val_dim(b, x, axis), first = n > 0 ? ((-shift) % n + n) % n : 0;
  tn_val parts[] = {tn_slice_axis(b, x, axis, first, n), tn_slice_axis(b, x, axis, 0, first)};
  return first == 0 ? x : tn_concat(b, 2, parts, axis);
}

static tn_status roll_decompose(tn_build *b, const void *attributes) {
  const roll_options *o = attributes;
  tn_val y = tn_build_in(b, 0);
  tn_type x = tn_ops_type(b, y);
  const int64_t all = -1;
  int32_t axis;
  if (o->axes.n == 0 && o->shifts.n == 1) {
    y = shape_roll(b, tn_reshape(b, y, 1, &all), 0, o->shifts.v[0]);
    return shape_yield(b, tn_reshape(b, y, x.rank, x.dims));
  }
  if (o->shifts.n != o->axes.n)
    return tn_fail(b, TN_EINVAL, "shifts",
                   "shifts has %lld entries and axes %lld, expected as many, or one shift and "
                   "no axes",
                   (long long)o->shifts.n, (long long)o->axes.n);
  for (int64_t i = 0; i < o->axes.n; i++) {
    TN_TRY(tn_ops_axis_of_x(b, o->axes.v[i], &axis));
    y = shape_roll(b, y, axis, o->shifts.v[i]);
  }
  return shape_yield(b, y);
}

/* ---- repetition ---- */

tn_val tn_ops_repeat(tn_build *b, tn_val x, int32_t axis, int64_t times, bool each) {
  tn_type type = tn_ops_type(b, x);
  int64_t outer = 1, inner = 1, n = type.dims[axis];
  for (int32_t i = 0; i < axis; i++) outer *= type.dims[i];
  for (int32_t i = axis + 1; i < type.rank; i++) inner *= type.dims[i];
  const int64_t one[] = {outer, each ? n : 1, each ? 1 : n, inner},
                many[] = {outer, each ? n : times, each ? times : n, inner};
  if (times == 1) return x;
  type.dims[axis] = n * times;
  return tn_reshape(b, tn_broadcast(b, tn_reshape(b, x, 4, one), 4, many), type.rank, type.dims);
}

typedef struct repeat_options {
  tn_ints repeats;
} repeat_options;

/* Repeats are aligned at the last dimension. */
static tn_status tile_decompose(tn_build *b, const void *attributes) {
  const repeat_options *o = attributes;
  tn_val y = tn_build_in(b, 0);
  tn_type x = tn_ops_type(b, y);
  int64_t n = o->repeats.n;
  for (int64_t i = 0; i < n; i++)
    if (o->repeats.v[i] < 0 || n > TN_MAX_RANK)
      return tn_fail(b, TN_EINVAL, "repeats", "expected at most %d repeats, each >= 0", (int)TN_MAX_RANK);
  while (tn_val_type(b, y)->rank < n && tn_build_status(b) == TN_OK) y = shape_unsqueeze(b, y, 0);
  int32_t rank = n > x.rank ? (int32_t)n : x.rank;
  for (int32_t i = 0; i < n; i++) y = tn_ops_repeat(b, y, rank - (int32_t)n + i, o->repeats.v[i], false);
  return shape_yield(b, y);
}

typedef struct repeat_interleave_options {
  int64_t repeats, axis;
} repeat_interleave_options;

static tn_status repeat_interleave_decompose(tn_build *b, const void *attributes) {
  const repeat_interleave_options *o = attributes;
  int32_t axis;
  TN_TRY(tn_ops_axis_of_x(b, o->axis, &axis));
  return shape_yield(b, tn_ops_repeat(b, tn_build_in(b, 0), axis, o->repeats, true));
}

/* ---- descriptors ---- */

static const tn_option unsqueeze_options[] = {
    SHAPE_AXIS(tn_axis_attributes, "place of the new dimension, -rank-1 .. rank"), TN_OPT_END};
static const tn_option squeeze_options[] = {TN_OPT(shape_axes_options, axes, TN_OPT_INTS, "[]", NULL,
                                                   "dimensions to drop where they are 1; none: all"),
                                            TN_OPT_END};
static const tn_option expand_options[] = {
    TN_OPT(tn_broadcast_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions of the result; -1: that of x"),
    TN_OPT_END};
static const tn_option swapaxes_rows[] = {
    TN_OPT(swapaxes_options, axis0, TN_OPT_INT, NULL, NULL, "one dimension, -rank .. rank-1"),
    TN_OPT(swapaxes_options, axis1, TN_OPT_INT, NULL, NULL, "the other one"), TN_OPT_END};
static const tn_option movedim_rows[] = {
    TN_OPT(movedim_options, source, TN_OPT_INTS, NULL, NULL, "dimensions that move, -rank .. rank-1"),
    TN_OPT(movedim_options, destination, TN_OPT_INTS, NULL, NULL, "where each of them goes"), TN_OPT_END};
static const tn_option narrow_rows[] = {
    SHAPE_AXIS(narrow_options, "dimension to cut, -rank .. rank-1"),
    TN_OPT(narrow_options, start, TN_OPT_INT, NULL, NULL, "first element, from the end where negative"),
    TN_OPT(narrow_options, length, TN_OPT_INT, NULL, NULL, "number of elements"), TN_OPT_END};
static const tn_option select_rows[] = {
    SHAPE_AXIS(select_options, "dimension to drop, -rank .. rank-1"),
    TN_OPT(select_options, index, TN_OPT_INT, NULL, NULL, "of the element, from the end where negative"),
    TN_OPT_END};
static const tn_option stack_options[] = {
    TN_OPT(tn_axis_attributes, axis, TN_OPT_INT, "0", NULL, "place of the new dimension, -rank-1 .. rank"),
    TN_OPT_END};
static const tn_option flip_options[] = {
    TN_OPT(shape_axes_options, axes, TN_OPT_INTS, "[]", NULL, "dimensions to reverse; none: all"),
    TN_OPT_END};
static const tn_option roll_rows[] = {
    TN_OPT(roll_options, shifts, TN_OPT_INTS, NULL, NULL, "places that the elements of each axis move up"),
    TN_OPT(roll_options, axes, TN_OPT_INTS, "[]", NULL, "dimensions to roll; none: x as a vector"),
    TN_OPT_END};
static const tn_option repeat_rows[] = {
    TN_OPT(repeat_options, repeats, TN_OPT_INTS, NULL, NULL, "of each dimension, aligned at the last"),
    TN_OPT_END};
static const tn_option repeat_interleave_rows[] = {
    TN_OPT(repeat_interleave_options, repeats, TN_OPT_INT, NULL, ">= 0", "of each element"),
    TN_OPT(repeat_interleave_options, axis, TN_OPT_INT, "0", NULL, "dimension to repeat, -rank .. rank-1"),
    TN_OPT_END};

#define SHAPE_OP(name, doc, struct_, options)                                                                \
  TN_OPS_COMPOSITE(name, doc, struct_, options, TN_CLASS_MOVE, "(x:T) -> (y:T)")

SHAPE_OP(unsqueeze, "x with a new dimension of size 1", tn_axis_attributes, unsqueeze_options);
SHAPE_OP(squeeze, "x without dimensions of size 1", shape_axes_options, squeeze_options);
SHAPE_OP(expand, "x repeated along dimensions of size 1 and new leading ones", tn_broadcast_attributes,
         expand_options);
SHAPE_OP(swapaxes, "x with two dimensions exchanged", swapaxes_options, swapaxes_rows);
SHAPE_OP(movedim, "x with dimensions moved to other places", movedim_options, movedim_rows);
SHAPE_OP(narrow, "some neighbouring elements along an axis", narrow_options, narrow_rows);
SHAPE_OP(select, "one element along an axis, which is dropped", select_options, select_rows);
SHAPE_OP(flip, "x with the order along axes reversed", shape_axes_options, flip_options);
SHAPE_OP(roll, "x with elements moved along axes, the last to the front", roll_options, roll_rows);
SHAPE_OP(tile, "x repeated along its dimensions", repeat_options, repeat_rows);
SHAPE_OP(repeat_interleave, "x with each element along an axis repeated", repeat_interleave_options,
         repeat_interleave_rows);
TN_OPS_COMPOSITE(stack, "operands joined along a new dimension", tn_axis_attributes, stack_options,
                 TN_CLASS_MOVE, "(xs*:T) -> (y:T)");
