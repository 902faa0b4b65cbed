/* plugins/losses/regression.c: the part of a variance that is explained. */
#include "plugins/losses/losses.h"

#include <math.h>

/* The target in the dtype of the value. */
static tn_status r2_target(tn_build *b, tn_val *target) {
  tn_val x = tn_build_in(b, 0);
  *target = tn_build_in(b, 1);
  if (!tn_type_same_dims(tn_val_type(b, x), tn_val_type(b, *target)))
    return tn_fail(b, TN_EINVAL, NULL,
                   "the value and the target have different shapes, expected the same shape");
  *target = tn_to_dtype(b, *target, tn_val_type(b, x)->dtype);
  return TN_OK;
}

/* (N, 4, numbers) in f64: 1, the target, its square, the square of the error. */
static tn_status build_r2(tn_build *b, const void *options) {
  tn_val target;
  (void)options;
  TN_TRY(r2_target(b, &target));
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

const tn_layer_kind metric_r2 = {
    .item =
        TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "r2",
                      "part of the variance of the targets that is explained (R squared): the mean over the "
                      "numbers of a sample"),
    .role = TN_LAYER_METRIC,
    .min_in = 2,
    .max_in = 2,
    .types = "two tensors of one shape",
    .example = "targets = label: f32[10]\nloss = mse\nmetrics = r2",
    .build = build_r2,
    .of_sums = r2_of_sums};
