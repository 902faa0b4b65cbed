/* plugins/layers/pool.c: pooling over (N, C, spatial...): max_pool, avg_pool, global_avg_pool. Maxima of
 * dilated windows are maxima of slices, one dimension after the other: a slice has one element of each
 * window. */
#include "plugins/layers/layers.h"

#include <math.h>

typedef struct pool_options {
  tn_ints kernel, stride, padding, dilation;
  int32_t ceil, include_pad;
} pool_options;

static const tn_option max_rows[] = {
    TN_OPT(pool_options, kernel, TN_OPT_INTS, NULL, ">= 1",
           "size of the window: one number, or one for each dimension"),
    TN_OPT(pool_options, stride, TN_OPT_INTS, "[]", ">= 1",
           "step of the window; [] is the size of the window"),
    TN_OPT(pool_options, padding, TN_OPT_INTS, "0", ">= 0",
           "border around the input, ignored by the maximum"),
    TN_OPT(pool_options, ceil, TN_OPT_FLAG, "no", NULL, "round the size of the result up"),
    TN_OPT(pool_options, dilation, TN_OPT_INTS, "1", ">= 1", "distance of the elements of a window"),
    TN_OPT_END};
static const tn_option avg_rows[] = {
    TN_OPT(pool_options, kernel, TN_OPT_INTS, NULL, ">= 1",
           "size of the window: one number, or one for each dimension"),
    TN_OPT(pool_options, stride, TN_OPT_INTS, "[]", ">= 1",
           "step of the window; [] is the size of the window"),
    TN_OPT(pool_options, padding, TN_OPT_INTS, "0", ">= 0", "zeros around the input"),
    TN_OPT(pool_options, ceil, TN_OPT_FLAG, "no", NULL, "round the size of the result up"),
    TN_OPT(pool_options, include_pad, TN_OPT_FLAG, "yes", NULL,
           "count the border in the divisor of the mean"),
    TN_OPT_END};

/* The windows along each spatial dimension. */
typedef struct pool_windows {
  int32_t rank;
  int64_t kernel[3], stride[3], padding[3], dilation[3];
} pool_windows;

/* dilation: NULL for windows without it. */
static tn_status read_pool(tn_build *b, const pool_options *o, const tn_ints *dilation, pool_windows *w) {
  int32_t rank = w->rank = tn_val_type(b, tn_build_in(b, 0))->rank - 2;
  if (rank < 1 || rank > 3)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected 3 to 5: (N, C, H, W)", (int)rank + 2);
  TN_TRY(layer_spatial(b, "kernel", &o->kernel, rank, w->kernel));
  TN_TRY(layer_spatial(b, "stride", o->stride.n == 0 ? &o->kernel : &o->stride, rank, w->stride));
  TN_TRY(layer_spatial(b, "padding", &o->padding, rank, w->padding));
  return dilation != NULL ? layer_spatial(b, "dilation", dilation, rank, w->dilation) : TN_OK;
}

/* The ops end in the number of spatial dimensions: "max_pool2d". */
static tn_val emit_pool(tn_build *b, const char *op, const pool_options *o, const pool_windows *w,
                        bool average) {
  char name[24];
  snprintf(name, sizeof name, "%s%dd", op, (int)w->rank);
  tn_op_begin(b, name);
  tn_op_arg(b, tn_build_in(b, 0));
  tn_op_set_ints(b, "kernel", w->rank, w->kernel);
  tn_op_set_ints(b, "stride", w->rank, w->stride);
  tn_op_set_ints(b, "padding", w->rank, w->padding);
  tn_op_set_int(b, "ceil", o->ceil);
  if (average) tn_op_set_int(b, "include_pad", o->include_pad);
  return tn_op_end(b);
}

/* The number of windows along a dimension of `size` elements, as the ops count it; below 1: they do not fit.
 */
static int64_t pool_count(const pool_windows *w, int32_t i, int64_t size, bool ceil) {
  int64_t stride = w->stride[i], reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
  int64_t room = size + 2 * w->padding[i] - reach;
  if (room < 0) return 0;
  int64_t count = (ceil ? room + stride - 1 : room) / stride + 1;
  return ceil && (count - 1) * stride >= size + w->padding[i] ? count - 1 : count;
}

/* Of two elements the larger one, or NaN, else the first, as the op takes it. */
static tn_val pool_larger(tn_build *b, tn_val best, tn_val x) {
  return tn_where(b, tn_or(b, tn_gt(b, x, best), tn_ne(b, x, x)), x, best);
}

/* The maxima along spatial dimension i, whose border is below every number. */
static tn_val emit_dilated(tn_build *b, const pool_windows *w, int32_t i, tn_val x, int64_t count) {
  tn_type t = *tn_val_type(b, x);
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0}, steps[TN_MAX_RANK];
  int64_t at = 2 + i, size = t.dims[at], last = (count - 1) * w->stride[i];
  int64_t needed = last + w->dilation[i] * (w->kernel[i] - 1) + 1 - size - w->padding[i];
  low[at] = w->padding[i];
  high[at] = needed > 0 ? needed : 0;
  x = tn_extend(b, x, t.rank, low, t.rank, high, 0, -INFINITY);
  for (int32_t d = 0; d < t.rank; d++) steps[d] = 1;
  steps[at] = w->stride[i];
  tn_val best = 0;
  for (int64_t k = 0; k < w->kernel[i]; k++) {
    int64_t starts[TN_MAX_RANK] = {0};
    starts[at] = k * w->dilation[i];
    t.dims[at] = starts[at] + last + 1;
    tn_val taken = tn_slice(b, x, t.rank, starts, t.rank, t.dims, t.rank, steps);
    best = best == 0 ? taken : pool_larger(b, best, taken);
  }
  return best;
}

static tn_status check_dilated(tn_build *b, const pool_windows *w, int32_t i, int64_t size, int64_t count) {
  if (w->padding[i] > w->kernel[i] / 2)
    return tn_fail(b, TN_EINVAL, NULL, "padding %lld is more than half of kernel %lld",
                   (long long)w->padding[i], (long long)w->kernel[i]);
  if (count > 0) return TN_OK;
  return tn_fail(
      b, TN_EINVAL, NULL, "a kernel of %lld with dilation %lld does not fit %lld elements with padding %lld",
      (long long)w->kernel[i], (long long)w->dilation[i], (long long)size, (long long)w->padding[i]);
}

/* From the last dimension on, so that of equal elements the first in memory is taken. */
static tn_status build_dilated(tn_build *b, const pool_options *o, const pool_windows *w) {
  tn_val x = tn_build_in(b, 0);
  for (int32_t i = w->rank - 1; i >= 0; i--) {
    int64_t size = tn_val_dim(b, x, 2 + i), count = pool_count(w, i, size, o->ceil);
    TN_TRY(check_dilated(b, w, i, size, count));
    x = emit_dilated(b, w, i, x, count);
  }
  tn_build_yield(b, 0, x);
  return TN_OK;
}

static tn_status build_max(tn_build *b, const void *options) {
  const pool_options *o = options;
  pool_windows w;
  TN_TRY(read_pool(b, o, &o->dilation, &w));
  for (int32_t i = 0; i < w.rank; i++)
    if (w.dilation[i] > 1) return build_dilated(b, o, &w);
  tn_build_yield(b, 0, emit_pool(b, "max_pool", o, &w, false));
  return TN_OK;
}
static tn_status build_avg(tn_build *b, const void *options) {
  pool_windows w;
  TN_TRY(read_pool(b, options, NULL, &w));
  tn_build_yield(b, 0, emit_pool(b, "avg_pool", options, &w, true));
  return TN_OK;
}
static tn_status build_global(tn_build *b, const void *options) {
  (void)options;
  return layer_build_unary(b, "global_avg_pool");
}

const tn_layer_kind layer_max_pool = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "max_pool", "maximum of each window", pool_options, max_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, C, H, W), with one to three dimensions behind C, to (N, C, H', W'), where H' = (H + 2 "
             "padding - dilation (kernel - 1) - 1) / stride + 1, rounded down",
    .example = "inputs = image: f32[3, 32, 32]\nlayers = max_pool(2)",
    .build = build_max};
const tn_layer_kind layer_avg_pool = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "avg_pool", "mean of each window", pool_options, avg_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, C, H, W), with one to three dimensions behind C, to (N, C, H', W'), where H' = (H + 2 "
             "padding - kernel) "
             "/ stride + 1, rounded down",
    .example = "inputs = image: f32[3, 32, 32]\nlayers = avg_pool(3, stride=2, padding=1)",
    .build = build_avg};
const tn_layer_kind layer_global_avg_pool = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "global_avg_pool",
                          "mean of each channel: (N, C, spatial...) to (N, C)"),
    .min_in = 1,
    .max_in = 1,
    .types = "(N, C, H, W) to (N, C)",
    .example = "inputs = image: f32[3, 32, 32]\nlayers = global_avg_pool",
    .build = build_global};
