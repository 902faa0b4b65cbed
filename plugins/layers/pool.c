/* plugins/layers/pool.c: pooling over (N, C, spatial...): max_pool, avg_pool, global_avg_pool. */
#include "plugins/layers/layers.h"

typedef struct pool_options {
  tn_ints kernel, stride, padding;
  int32_t ceil, include_pad;
} pool_options;

static const tn_option max_rows[] = {
    TN_OPT(pool_options, kernel, TN_OPT_INTS, NULL, ">= 1",
           "size of the window: one number, or one for each dimension"),
    TN_OPT(pool_options, stride, TN_OPT_INTS, "[]", ">= 1",
           "step of the window; [] is the size of the window"),
    TN_OPT(pool_options, padding, TN_OPT_INTS, "0", ">= 0",
           "border around the input, ignored by the maximum"),
    TN_OPT(pool_options, ceil, TN_OPT_FLAG, "no", NULL, "round the size of the result up"), TN_OPT_END};
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

/* The ops end in the number of spatial dimensions: "max_pool2d". */
static tn_status emit_pool(tn_build *b, const char *op, const pool_options *o, bool average) {
  int64_t kernel[3], stride[3], padding[3];
  int32_t rank = tn_val_type(b, tn_build_in(b, 0))->rank - 2;
  char name[24];
  if (rank < 1 || rank > 3)
    return tn_fail(b, TN_EINVAL, NULL, "the input has rank %d, expected 3 to 5: (N, C, H, W)", (int)rank + 2);
  tn_status status = layer_spatial(b, "kernel", &o->kernel, rank, kernel);
  if (status == TN_OK)
    status = layer_spatial(b, "stride", o->stride.n == 0 ? &o->kernel : &o->stride, rank, stride);
  if (status == TN_OK) status = layer_spatial(b, "padding", &o->padding, rank, padding);
  if (status != TN_OK) return status;
  snprintf(name, sizeof name, "%s%dd", op, (int)rank);
  tn_op_begin(b, name);
  tn_op_arg(b, tn_build_in(b, 0));
  tn_op_set_ints(b, "kernel", rank, kernel);
  tn_op_set_ints(b, "stride", rank, stride);
  tn_op_set_ints(b, "padding", rank, padding);
  tn_op_set_int(b, "ceil", o->ceil);
  if (average) tn_op_set_int(b, "include_pad", o->include_pad);
  tn_build_yield(b, 0, tn_op_end(b));
  return TN_OK;
}

static tn_status build_max(tn_build *b, const void *options) {
  return emit_pool(b, "max_pool", options, false);
}
static tn_status build_avg(tn_build *b, const void *options) {
  return emit_pool(b, "avg_pool", options, true);
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
             "padding - kernel) "
             "/ stride + 1, rounded down",
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
