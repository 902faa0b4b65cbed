/* core/conformance/cases/reduce.c: cases of reductions and pooling. */
#include <stdio.h>
#include <string.h>

#include "core/conformance/cases/cases.h"

/* Some of the axes, in any order and with either sign; an empty list means all. Returns their number. */
static int64_t draw_reduce_axes(tn_draw *d, int32_t rank, int64_t *axes) {
  int64_t n = 0;
  for (int32_t i = 0; i < rank; i++)
    if (tn_draw_flag(d)) axes[n++] = tn_draw_flag(d) ? i : i - rank;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t k = tn_draw_between(d, 0, i), axis = axes[i];
    axes[i] = axes[k];
    axes[k] = axis;
  }
  return n;
}

/* Only sums are drawn with empty tensors: extremes and means of them are errors or NaN. */
static tn_val reduce_case_reduce(tn_draw *d, const tn_case *c) {
  int64_t axes[TN_MAX_RANK];
  tn_type t = tn_draw_type(d, d->dtype, 0, 5, strcmp(c->op, "reduce_sum") == 0);
  tn_val x = tn_draw_tensor(d, t, c->fill);
  int64_t n = draw_reduce_axes(d, t.rank, axes);
  tn_draw_begin(d, c->op, 1, &x);
  tn_op_set_ints(d->b, "axes", n, axes);
  tn_op_set_int(d->b, "keep", tn_draw_flag(d));
  return tn_op_end(d->b);
}

static tn_val reduce_case_argmax(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 1, 4, false);
  tn_val x = tn_draw_tensor(d, t, c->fill);
  tn_draw_begin(d, c->op, 1, &x);
  tn_op_set_int(d->b, "axis", tn_draw_between(d, -t.rank, t.rank - 1));
  return tn_op_end(d->b);
}

/* Every other draw has a mean far from 0, where plain sums lose the variance. */
static tn_val reduce_case_moments(tn_draw *d, const tn_case *c) {
  int64_t axes[TN_MAX_RANK];
  tn_type t = tn_draw_type(d, d->dtype, 0, 5, true);
  tn_val x = tn_draw_tensor(d, t, tn_draw_flag(d) ? TN_FILL_FAR : c->fill);
  int64_t n = draw_reduce_axes(d, t.rank, axes);
  tn_draw_begin(d, c->op, 1, &x);
  tn_op_set_ints(d->b, "axes", n, axes);
  return tn_op_end(d->b);
}

/* The result of a normalization of x over all but the channels, in f32 at least, and the ReLU behind it. */
static tn_val draw_normalized_relu(tn_draw *d, tn_val x, const tn_val rows[3], tn_val zero) {
  tn_type t = *tn_val_type(d->b, x), wide = *tn_val_type(d->b, rows[0]);
  const int64_t view[] = {1, t.dims[1], 1, 1};
  tn_val v[3], y = wide.dtype == t.dtype ? x : tn_to_dtype(d->b, x, wide.dtype);
  for (int32_t i = 0; i < 3; i++) v[i] = tn_reshape(d->b, rows[i], 4, view);
  y = tn_add(d->b, tn_mul(d->b, tn_sub(d->b, y, v[0]), v[1]), v[2]);
  if (wide.dtype != t.dtype) y = tn_to_dtype(d->b, y, t.dtype);
  return tn_maximum(d->b, y, zero);
}

/* The gradient passes a ReLU behind the normalization first. Half of the time the ReLU has another reader. */
static tn_val draw_sums_behind_relu(tn_draw *d) {
  static const int64_t axes[] = {0, 2, 3};
  const int64_t dims[] = {tn_draw_between(d, 1, 3), tn_draw_channels(d, 1, 6), tn_draw_between(d, 1, 20),
                          tn_draw_between(d, 1, 20)};
  int32_t wide = d->dtype == TN_F64 ? TN_F64 : TN_F32;
  tn_type t = tn_draw_type_of(d->dtype, 4, dims), row = tn_draw_type_of(wide, 1, dims + 1);
  tn_val dy = tn_draw_tensor(d, t, TN_FILL_ANY), x = tn_draw_tensor(d, t, TN_FILL_ANY), rows[3];
  for (int32_t i = 0; i < 3; i++) rows[i] = tn_draw_tensor(d, row, TN_FILL_ANY);
  tn_val zero = tn_scalar(d->b, d->dtype, 0), r = draw_normalized_relu(d, x, rows, zero);
  tn_val h = tn_where(d->b, tn_gt(d->b, r, zero), dy, zero);
  if (tn_draw_flag(d)) d->inner[d->n_inner++] = r;
  d->inner[d->n_inner++] = h;
  return tn_norm_grad_sums(d->b, h, x, rows[0], tn_draw_tensor(d, row, TN_FILL_POSITIVE), 3, axes);
}

static tn_val reduce_case_norm_grad_sums(tn_draw *d, const tn_case *c) {
  int64_t axes[TN_MAX_RANK];
  tn_type t = tn_draw_type(d, d->dtype, 1, 5, true), row = {d->dtype == TN_F64 ? TN_F64 : TN_F32, 0, {0}};
  bool reduced[TN_MAX_RANK] = {false};
  if (d->large && tn_draw_flag(d)) return draw_sums_behind_relu(d);
  int64_t n = draw_reduce_axes(d, t.rank, axes);
  for (int64_t i = 0; i < n; i++) reduced[axes[i] < 0 ? axes[i] + t.rank : axes[i]] = true;
  for (int32_t i = 0; i < t.rank && n > 0; i++)
    if (!reduced[i]) row.dims[row.rank++] = t.dims[i];
  tn_val dy = tn_draw_tensor(d, t, TN_FILL_ANY), x = tn_draw_tensor(d, t, TN_FILL_ANY);
  tn_val mean = tn_draw_tensor(d, row, TN_FILL_ANY), rstd = tn_draw_tensor(d, row, TN_FILL_POSITIVE);
  tn_draw_begin(d, c->op, 4, (tn_val[]){dy, x, mean, rstd});
  tn_op_set_ints(d->b, "axes", n, axes);
  return tn_op_end(d->b);
}

/* ---- pooling ---- */

typedef struct pool_case {
  int32_t rank; /* spatial dimensions, the digit in the op's name */
  int64_t kernel[3], stride[3], padding[3];
  bool has_stride, ceil, include_pad;
  tn_type x, y;
} pool_case;

static int64_t count_windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding, bool ceil) {
  int64_t room = size + 2 * padding - kernel, count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  return ceil && (count - 1) * stride >= size + padding ? count - 1 : count;
}

static pool_case draw_pool(tn_draw *d, const char *op) {
  pool_case w = {.rank = tn_case_spatial(op),
                 .has_stride = tn_draw_flag(d),
                 .ceil = tn_draw_flag(d),
                 .include_pad = tn_draw_flag(d)};
  w.x = w.y =
      tn_draw_type_of(d->dtype, 2 + w.rank, (int64_t[5]){tn_draw_between(d, 0, 2), tn_draw_between(d, 1, 3)});
  for (int32_t i = 0; i < w.rank; i++) {
    w.kernel[i] = tn_draw_between(d, 1, 4);
    w.padding[i] = tn_draw_between(d, 0, w.kernel[i] / 2);
    w.stride[i] = w.has_stride ? tn_draw_between(d, 1, 4) : w.kernel[i];
    int64_t least = w.kernel[i] - 2 * w.padding[i];
    w.x.dims[2 + i] = tn_draw_between(d, least < 1 ? 1 : least, d->large && w.rank < 3 ? 40 : 7);
    w.y.dims[2 + i] = count_windows(w.x.dims[2 + i], w.kernel[i], w.stride[i], w.padding[i], w.ceil);
  }
  return w;
}

static void set_pool_attributes(tn_draw *d, const pool_case *w) {
  tn_op_set_ints(d->b, "kernel", w->rank, w->kernel);
  if (w->has_stride) tn_op_set_ints(d->b, "stride", w->rank, w->stride);
  tn_op_set_ints(d->b, "padding", w->rank, w->padding);
  tn_op_set_int(d->b, "ceil", w->ceil);
}

/* The indices of a pooling, each of which is in its window. */
static tn_val emit_pool_index(tn_draw *d, const pool_case *w, tn_val x) {
  char op[16];
  snprintf(op, sizeof op, "max_pool%dd", (int)w->rank % 10);
  tn_draw_begin(d, op, 1, &x);
  set_pool_attributes(d, w);
  return tn_op_result(d->b, tn_op_end(d->b), 1);
}

static tn_val reduce_case_max_pool(tn_draw *d, const tn_case *c) {
  pool_case w = draw_pool(d, c->op);
  tn_val x = tn_draw_tensor(d, w.x, TN_FILL_DISTINCT);
  tn_draw_begin(d, c->op, 1, &x);
  set_pool_attributes(d, &w);
  return tn_op_end(d->b);
}

static tn_val reduce_case_max_pool2d_grad(tn_draw *d, const tn_case *c) {
  pool_case w = draw_pool(d, c->op);
  tn_val dy = tn_draw_tensor(d, w.y, TN_FILL_ANY), x = tn_draw_tensor(d, w.x, TN_FILL_DISTINCT);
  tn_val index = emit_pool_index(d, &w, x);
  tn_draw_begin(d, c->op, 2, (tn_val[]){dy, index});
  set_pool_attributes(d, &w);
  tn_op_set_ints(d->b, "dims", 4, w.x.dims);
  return tn_op_end(d->b);
}

/* Unpools with the indices of a pooling that has the same window. */
static tn_val reduce_case_max_unpool(tn_draw *d, const tn_case *c) {
  pool_case w = draw_pool(d, c->op);
  tn_val x = tn_draw_tensor(d, w.x, TN_FILL_DISTINCT), small = tn_draw_tensor(d, w.y, TN_FILL_ANY);
  tn_val index = emit_pool_index(d, &w, x);
  tn_draw_begin(d, c->op, 2, (tn_val[]){small, index});
  set_pool_attributes(d, &w);
  tn_op_set_ints(d->b, "size", w.rank, w.x.dims + 2);
  return tn_op_end(d->b);
}

static tn_val reduce_case_lp_pool(tn_draw *d, const tn_case *c) {
  pool_case w = draw_pool(d, c->op);
  tn_val x = tn_draw_tensor(d, w.x, c->fill);
  tn_draw_begin(d, c->op, 1, &x);
  set_pool_attributes(d, &w);
  tn_op_set_float(d->b, "p", tn_draw_flag(d) ? 2 : 1.5);
  return tn_op_end(d->b);
}

static tn_val reduce_case_avg_pool(tn_draw *d, const tn_case *c) {
  pool_case w = draw_pool(d, c->op);
  bool backward = strstr(c->op, "_grad") != NULL;
  tn_val x = tn_draw_tensor(d, backward ? w.y : w.x, TN_FILL_ANY);
  tn_draw_begin(d, c->op, 1, &x);
  set_pool_attributes(d, &w);
  tn_op_set_int(d->b, "include_pad", w.include_pad);
  if (backward) tn_op_set_ints(d->b, "dims", 4, w.x.dims);
  return tn_op_end(d->b);
}

static tn_val reduce_case_global_pool(tn_draw *d, const tn_case *c) {
  return tn_op1(d->b, c->op, tn_draw_tensor(d, tn_draw_type(d, d->dtype, 3, 5, false), c->fill));
}

static tn_val reduce_case_adaptive_pool(tn_draw *d, const tn_case *c) {
  tn_type t = tn_draw_type(d, d->dtype, 3, 5, false);
  int64_t size[TN_MAX_RANK], n = tn_draw_flag(d) ? 1 : t.rank - 2;
  for (int64_t i = 0; i < n; i++) size[i] = tn_draw_between(d, 0, 5);
  tn_val x = tn_draw_tensor(d, t, c->fill);
  tn_draw_begin(d, c->op, 1, &x);
  tn_op_set_ints(d->b, "size", n, size);
  return tn_op_end(d->b);
}

static tn_val reduce_case_all_finite(tn_draw *d, const tn_case *c) {
  tn_val x = tn_draw_tensor(d, tn_draw_type(d, d->dtype, 0, 4, true), c->fill);
  /* 1 / (x - x) is infinite. */
  if (tn_draw_flag(d)) x = tn_reciprocal(d->b, tn_sub(d->b, x, x));
  return tn_op1(d->b, c->op, x);
}

const tn_case tn_reduce_cases[] = {
    {"reduce_sum", reduce_case_reduce, TN_FILL_ANY, TN_CASE_NUMBERS},
    {"reduce_mean", reduce_case_reduce, TN_FILL_ANY, TN_CASE_FLOATS},
    {"reduce_max", reduce_case_reduce, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"reduce_min", reduce_case_reduce, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"argmax", reduce_case_argmax, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"moments", reduce_case_moments, TN_FILL_ANY, TN_CASE_FLOATS, .variance = 1},
    {"norm_grad_sums", reduce_case_norm_grad_sums, TN_FILL_ANY, TN_CASE_FLOATS},
    {"all_finite", reduce_case_all_finite, TN_FILL_ANY, TN_CASE_FLOATS},
    {"max_pool1d", reduce_case_max_pool, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"max_pool2d", reduce_case_max_pool, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"max_pool2d_grad", reduce_case_max_pool2d_grad, TN_FILL_ANY, TN_CASE_FLOATS},
    {"max_pool3d", reduce_case_max_pool, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"avg_pool1d", reduce_case_avg_pool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"avg_pool2d", reduce_case_avg_pool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"avg_pool2d_grad", reduce_case_avg_pool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"avg_pool3d", reduce_case_avg_pool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"lp_pool1d", reduce_case_lp_pool, TN_FILL_POSITIVE, TN_CASE_FLOATS},
    {"lp_pool2d", reduce_case_lp_pool, TN_FILL_POSITIVE, TN_CASE_FLOATS},
    {"lp_pool3d", reduce_case_lp_pool, TN_FILL_POSITIVE, TN_CASE_FLOATS},
    {"max_unpool1d", reduce_case_max_unpool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"max_unpool2d", reduce_case_max_unpool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"max_unpool3d", reduce_case_max_unpool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"global_avg_pool", reduce_case_global_pool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"global_max_pool", reduce_case_global_pool, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {"adaptive_avg_pool", reduce_case_adaptive_pool, TN_FILL_ANY, TN_CASE_FLOATS},
    {"adaptive_max_pool", reduce_case_adaptive_pool, TN_FILL_DISTINCT, TN_CASE_NUMBERS},
    {NULL, NULL, 0, 0},
};
