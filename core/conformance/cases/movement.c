/* core/conformance/cases/movement.c: cases of data movement ops. */
#include "core/conformance/cases/cases.h"

static tn_val movement_case_unary(tn_draw *d, const tn_case *c) {
  return tn_op1(d->b, c->op, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 5, true), c->fill));
}

/* Any dims of the same count: neighbours are joined, ones inserted, sometimes one dim is -1. */
static tn_val movement_case_reshape(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 0, 4, true);
  int64_t dims[TN_MAX_RANK], n = 0;
  for (int32_t i = 0; i < t.rank; i++) {
    if (n > 0 && tn_draw_between(d, 0, 2) == 0)
      dims[n - 1] *= t.dims[i];
    else
      dims[n++] = t.dims[i];
    if (n < TN_MAX_RANK - 1 && tn_draw_between(d, 0, 4) == 0) dims[n++] = 1;
  }
  if (n > 0 && tn_type_count(&t) > 0 && tn_draw_flag(d)) dims[tn_draw_between(d, 0, n - 1)] = -1;
  return tn_reshape(d->b, tn_draw_tensor(d, t, c->fill), n, dims);
}

static tn_val movement_case_transpose(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 0, 6, true);
  int64_t order[TN_MAX_RANK];
  for (int32_t i = 0; i < t.rank; i++) order[i] = i;
  for (int32_t i = t.rank - 1; i > 0; i--) {
    int64_t k = tn_draw_between(d, 0, i), from = order[i];
    order[i] = order[k];
    order[k] = from;
  }
  return tn_transpose(d->b, tn_draw_tensor(d, t, c->fill), t.rank, order);
}

static tn_val movement_case_slice(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 0, 5, true);
  int64_t starts[TN_MAX_RANK], stops[TN_MAX_RANK], steps[TN_MAX_RANK];
  for (int32_t i = 0; i < t.rank; i++) {
    starts[i] = tn_draw_between(d, 0, t.dims[i]);
    stops[i] = tn_draw_between(d, starts[i], t.dims[i]);
    steps[i] = tn_draw_between(d, 1, 3);
  }
  tn_val x = tn_draw_tensor(d, t, c->fill);
  tn_draw_begin(d, c->op, 1, &x);
  tn_op_set_ints(d->b, "starts", t.rank, starts);
  tn_op_set_ints(d->b, "stops", t.rank, stops);
  if (tn_draw_flag(d)) tn_op_set_ints(d->b, "steps", t.rank, steps);
  return tn_op_end(d->b);
}

/* Starts from far in front of the picture to behind it, with each optional operand present or absent. */
static tn_val movement_case_crop(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 3, 5, true);
  tn_type pairs = {tn_draw_flag(d) ? TN_I64 : TN_I32, 2, {t.dims[0], 2}};
  int64_t size[] = {tn_draw_size(d, 0, 5), tn_draw_size(d, 0, 5)};
  tn_val x = tn_draw_tensor(d, t, c->fill), start = 0, mirror = 0;
  int64_t reach = tn_draw_between(d, 0, 7) == 0 ? 1 << 30 : tn_draw_between(d, 0, 6);
  if (tn_draw_between(d, 0, 3) > 0) start = tn_draw_integers(d, pairs, -reach, reach + 1);
  if (tn_draw_flag(d)) mirror = tn_draw_integers(d, pairs, 0, 2);
  return tn_crop(d->b, x, start, mirror, 2, size);
}

static tn_val movement_case_pad(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 0, 4, true);
  int64_t low[TN_MAX_RANK], high[TN_MAX_RANK], inner[TN_MAX_RANK];
  for (int32_t i = 0; i < t.rank; i++) {
    low[i] = tn_draw_between(d, 0, 2);
    high[i] = tn_draw_between(d, 0, 2);
    inner[i] = tn_draw_between(d, 0, 2);
  }
  tn_val x = tn_draw_tensor(d, t, c->fill);
  tn_draw_begin(d, c->op, 1, &x);
  tn_op_set_ints(d->b, "low", t.rank, low);
  tn_op_set_ints(d->b, "high", t.rank, high);
  if (tn_draw_flag(d)) tn_op_set_ints(d->b, "inner", t.rank, inner);
  return tn_op_end(d->b);
}

/* Borders that all modes have elements for. */
static tn_val movement_case_extend(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 0, 4, false);
  int64_t low[TN_MAX_RANK], high[TN_MAX_RANK];
  for (int32_t i = 0; i < t.rank; i++) {
    int64_t most = t.dims[i] > 4 ? 3 : t.dims[i] - 1;
    low[i] = tn_draw_between(d, 0, most);
    high[i] = tn_draw_between(d, 0, most);
  }
  tn_val x = tn_draw_tensor(d, t, c->fill);
  int32_t mode = (int32_t)tn_draw_between(d, 0, 3);
  return tn_extend(d->b, x, t.rank, low, t.rank, high, mode, tn_draw_flag(d) ? -2 : 0);
}

static tn_val movement_case_interpolate(tn_draw *d, const tn_case *c) {
  static const char *const modes[] = {"nearest", "nearest_exact", "bilinear", "bicubic", "area"};
  tn_type t = tn_draw_type(d, d->dtype, 3, 5, false);
  int64_t size[TN_MAX_RANK], n = tn_draw_flag(d) ? 1 : t.rank - 2;
  double scale[TN_MAX_RANK];
  for (int64_t i = 0; i < n; i++) {
    size[i] = tn_draw_between(d, 1, 9);
    scale[i] = tn_draw_flag(d) ? (double)tn_draw_between(d, 1, 3) : tn_rng_between(&d->rng, 1, 2.5);
  }
  tn_val x = tn_draw_tensor(d, t, c->fill);
  tn_draw_begin(d, c->op, 1, &x);
  if (tn_draw_flag(d))
    tn_op_set_ints(d->b, "size", n, size);
  else
    tn_op_set_floats(d->b, "scale", n, scale);
  tn_op_set_text(d->b, "mode", modes[tn_draw_between(d, 0, 4)]);
  tn_op_set_int(d->b, "align_corners", tn_draw_flag(d));
  tn_op_set_int(d->b, "antialias", tn_draw_flag(d));
  return tn_op_end(d->b);
}

/* Positions inside the images and outside. */
static tn_val movement_case_grid_sample(tn_draw *d, const tn_case *c) {
  static const char *const modes[] = {"bilinear", "nearest"}, *const paddings[] = {"zeros", "border",
                                                                                   "reflection"};
  int64_t batch = tn_draw_between(d, 0, 2);
  const int64_t images[] = {batch, tn_draw_size(d, 1, 3), tn_draw_size(d, 1, 5), tn_draw_size(d, 1, 5)};
  const int64_t places[] = {batch, tn_draw_between(d, 1, 4), tn_draw_between(d, 1, 4), 2};
  tn_val x = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 4, images), c->fill);
  tn_val grid = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 4, places), c->fill);
  tn_draw_begin(d, c->op, 2, (tn_val[]){x, grid});
  tn_op_set_text(d->b, "mode", modes[tn_draw_between(d, 0, 1)]);
  tn_op_set_text(d->b, "padding_mode", paddings[tn_draw_between(d, 0, 2)]);
  tn_op_set_int(d->b, "align_corners", tn_draw_flag(d));
  return tn_op_end(d->b);
}

static tn_val movement_case_affine_grid(tn_draw *d, const tn_case *c) {
  const int64_t dims[] = {tn_draw_between(d, 0, 3), 2, 3};
  const int64_t size[] = {tn_draw_between(d, 1, 4), tn_draw_between(d, 1, 4)};
  tn_val theta = tn_draw_tensor(d, tn_draw_type_of(d->dtype, 3, dims), c->fill);
  tn_draw_begin(d, c->op, 1, &theta);
  tn_op_set_ints(d->b, "size", 2, size);
  tn_op_set_int(d->b, "align_corners", tn_draw_flag(d));
  return tn_op_end(d->b);
}

static tn_val movement_case_concat(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 1, 5, true);
  int64_t axis = tn_draw_between(d, 0, t.rank - 1), n = tn_draw_between(d, 1, 4);
  tn_val xs[4];
  for (int64_t i = 0; i < n; i++) {
    t.dims[axis] = tn_draw_between(d, 0, 3);
    xs[i] = tn_draw_tensor(d, t, c->fill);
  }
  tn_draw_begin(d, c->op, (int32_t)n, xs);
  tn_op_set_int(d->b, "axis", tn_draw_flag(d) ? axis : axis - t.rank);
  return tn_op_end(d->b);
}

static tn_val movement_case_pack(tn_draw *d, const tn_case *c) {
  int64_t offsets[4], count = 0, n = tn_draw_between(d, 1, 4);
  tn_val xs[4];
  for (int64_t i = 0; i < n; i++) {
    tn_type t = tn_draw_type(d, d->dtype, 0, 3, true);
    xs[i] = tn_draw_tensor(d, t, c->fill);
    offsets[i] = count + tn_draw_between(d, 0, 5);
    count = offsets[i] + tn_type_count(&t);
  }
  tn_draw_begin(d, c->op, (int32_t)n, xs);
  tn_op_set_ints(d->b, "offsets", n, offsets);
  tn_op_set_int(d->b, "count", count + tn_draw_between(d, 0, 5));
  return tn_op_end(d->b);
}

/* A mean is of floats. */
static int32_t movement_case_reduction(tn_draw *d) {
  return (int32_t)tn_draw_between(d, TN_REDUCTION_SUM,
                                  tn_dtype_is_float(d->dtype) ? TN_REDUCTION_MEAN : TN_REDUCTION_MAX);
}

/* One rank: the result is the operand. Several ranks are trained in tests/integration/distributed. */
static tn_val movement_case_all_reduce(tn_draw *d, const tn_case *c) {
  tn_val x = tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 5, true), c->fill);
  return tn_all_reduce(d->b, x, movement_case_reduction(d));
}

static tn_val movement_case_reduce_scatter(tn_draw *d, const tn_case *c) {
  tn_val x = tn_draw_tensor(d, tn_draw_type(d, d->dtype, 1, 5, true), c->fill);
  return tn_reduce_scatter(d->b, x, 1, movement_case_reduction(d));
}

static tn_val movement_case_all_gather(tn_draw *d, const tn_case *c) {
  return tn_all_gather(d->b, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 1, 5, true), c->fill), 1);
}

const tn_case tn_movement_cases[] = {
    {"reshape", movement_case_reshape, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"transpose", movement_case_transpose, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"slice", movement_case_slice, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"crop", movement_case_crop, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"extend", movement_case_extend, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"interpolate", movement_case_interpolate, TN_FILL_ANY, TN_CASE_FLOATS},
    {"grid_sample", movement_case_grid_sample, TN_FILL_ANY, TN_CASE_FLOATS, .wide_gradient = true},
    {"affine_grid", movement_case_affine_grid, TN_FILL_ANY, TN_CASE_FLOATS},
    {"pad", movement_case_pad, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"concat", movement_case_concat, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"copy", movement_case_unary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"reorder", movement_case_unary, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"pack", movement_case_pack, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"all_reduce", movement_case_all_reduce, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"reduce_scatter", movement_case_reduce_scatter, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"all_gather", movement_case_all_gather, TN_FILL_ANY, TN_CASE_NUMBERS},
    {NULL, NULL, 0, 0},
};
