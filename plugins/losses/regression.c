/* plugins/losses/regression.c: metrics of numbers: mae, rmse, mape and r2. */
#include "plugins/losses/losses.h"

#include <math.h>

static tn_status build_mae(tn_build *b, const void *options) {
  tn_val error;
  (void)options;
  TN_TRY(loss_error(b, &error));
  tn_build_yield(b, 0, tn_abs(b, error));
  return TN_OK;
}

static tn_status build_squares(tn_build *b, const void *options) {
  tn_val error;
  (void)options;
  TN_TRY(loss_error(b, &error));
  tn_build_yield(b, 0, tn_mul(b, error, error));
  return TN_OK;
}

/* A target of 0 counts as the rounding of f64, as in scikit-learn. */
static tn_status build_mape(tn_build *b, const void *options) {
  tn_val error, target;
  (void)options;
  TN_TRY(loss_error(b, &error));
  TN_TRY(loss_target(b, &target));
  tn_val least = loss_number_like(b, target, 0x1p-52);
  tn_build_yield(b, 0, tn_div(b, tn_abs(b, error), tn_maximum(b, tn_abs(b, target), least)));
  return TN_OK;
}

/* (N, 4, numbers) in f64: 1, the target, its square, the square of the error. */
static tn_status build_r2(tn_build *b, const void *options) {
  tn_val target;
  (void)options;
  TN_TRY(loss_target(b, &target));
  const tn_type *type = tn_val_type(b, target);
  int64_t n = type->rank > 0 ? type->dims[0] : 1, flat[] = {n, 1, n > 0 ? tn_type_count(type) / n : 0};
  tn_val t = tn_reshape(b, tn_to_dtype(b, target, TN_F64), 3, flat);
  tn_val error = tn_sub(b, tn_reshape(b, tn_to_dtype(b, tn_build_in(b, 0), TN_F64), 3, flat), t);
  const tn_type ones = {TN_F64, 3, {flat[0], flat[1], flat[2]}};
  const tn_val parts[] = {tn_full(b, &ones, 1), t, tn_mul(b, t, t), tn_mul(b, error, error)};
  tn_build_yield(b, 0, tn_concat(b, 4, parts, 1));
  return TN_OK;
}

/* Of a constant target, as scikit-learn: 1 where there is no error, else 0. */
static double r2_of_sums(const double *sums, const tn_type *row) {
  int64_t n = row->dims[1];
  double mean = 0;
  for (int64_t k = 0; k < n; k++) {
    double count = sums[k], t = sums[n + k], error = sums[3 * n + k];
    double spread = sums[2 * n + k] - t * t / count;
    mean += (spread > 0 ? 1 - error / spread : error > 0 ? 0 : 1) / (double)n;
  }
  return n > 0 && sums[0] > 0 ? mean : (double)NAN;
}

#define NUMBER_METRIC(name_, doc_, ...)                                                                      \
  const tn_layer_kind metric_##name_ = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, #name_, doc_),        \
                                        .role = TN_LAYER_METRIC,                                             \
                                        .min_in = 2,                                                         \
                                        .max_in = 2,                                                         \
                                        .types = "two tensors of one shape",                                 \
                                        .example =                                                           \
                                            "targets = label: f32[10]\nloss = mse\nmetrics = " #name_,       \
                                        __VA_ARGS__}

NUMBER_METRIC(mae, "mean absolute error", .build = build_mae, .falls = 1);
NUMBER_METRIC(rmse, "root of the mean squared error", .build = build_squares, .of_mean = TN_OF_MEAN_ROOT,
              .falls = 1);
NUMBER_METRIC(mape, "mean absolute error as a part of the target: 0.1 is ten percent", .build = build_mape,
              .falls = 1);
NUMBER_METRIC(r2,
              "part of the variance of the targets that is explained (R squared): the mean over the numbers "
              "of a sample",
              .build = build_r2, .of_sums = r2_of_sums);
