/* plugins/losses/losses.c: the losses. A loss yields a value per element, and a weight where elements differ.
 */
#include "plugins/losses/losses.h"

static const tn_option cross_entropy_rows[] = {
    TN_OPT(cross_entropy_options, label_smoothing, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the target that is spread evenly over all classes"),
    TN_OPT(cross_entropy_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),
    TN_OPT(cross_entropy_options, axis, TN_OPT_INT, "-1", NULL, "the dimension of the classes"),
    TN_OPT(cross_entropy_options, weights, TN_OPT_FLOATS, "[]", "[1e-30, 1e30]",
           "a factor for each class; empty: 1. The mean divides by the sum of the targets' factors"),
    TN_OPT_END};

static tn_status build_cross_entropy(tn_build *b, const void *given) { return yield_cross_entropy(b, given); }
static const tn_layer_kind cross_entropy = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "cross_entropy",
                    "negative log-likelihood of the target class, or of a part for each class, under softmax",
                    cross_entropy_options, cross_entropy_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "scores (N, classes), or with the classes along axis; targets: class numbers without that "
             "dimension, or a part for each class in the shape of the scores",
    .example = "loss = cross_entropy(label_smoothing=0.1)",
    .build = build_cross_entropy};

/* ---- of two tensors of one shape ---- */

static tn_status build_mse(tn_build *b, const void *options) {
  tn_val error;
  (void)options;
  tn_status status = loss_error(b, &error);
  if (status == TN_OK) tn_build_yield(b, 0, tn_mul(b, error, error));
  return status;
}
static const tn_layer_kind mse = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "mse", "squared error per element"),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "two tensors of one shape",
    .example = "targets = label: f32[10]\nloss = mse",
    .build = build_mse};

static tn_status build_l1(tn_build *b, const void *options) {
  tn_val error;
  (void)options;
  tn_status status = loss_error(b, &error);
  if (status == TN_OK) tn_build_yield(b, 0, tn_abs(b, error));
  return status;
}
static const tn_layer_kind l1 = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "l1", "absolute error per element"),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "two tensors of one shape",
    .example = "targets = label: f32[10]\nloss = l1",
    .build = build_l1};

typedef struct huber_options {
  double delta;
} huber_options;

static const tn_option huber_rows[] = {TN_OPT(huber_options, delta, TN_OPT_FLOAT, "1", "[1e-30, 1e30]",
                                              "error from which the loss grows linearly"),
                                       TN_OPT_END};

/* With c = min(|e|, delta): c (|e| - c / 2). */
static tn_status build_huber(tn_build *b, const void *options) {
  const huber_options *o = options;
  tn_val error;
  TN_TRY(loss_error(b, &error));
  tn_val size = tn_abs(b, error), near = tn_minimum(b, size, loss_number_like(b, size, o->delta));
  tn_build_yield(b, 0, tn_mul(b, near, tn_sub(b, size, tn_affine(b, near, 0.5, 0))));
  return TN_OK;
}
static const tn_layer_kind huber = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "huber",
                    "half the squared error per element up to delta, and delta (|error| - delta / 2) beyond",
                    huber_options, huber_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "two tensors of one shape",
    .example = "targets = label: f32[10]\nloss = huber(delta=0.5)",
    .build = build_huber};

typedef struct binary_options {
  double positive;
} binary_options;

static const tn_option binary_rows[] = {TN_OPT(binary_options, positive, TN_OPT_FLOAT, "1", "[0, 1e30]",
                                               "factor of the loss where the target is 1"),
                                        TN_OPT_END};

/* With s(x) = log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): target positive s(-x) + (1 - target) s(x), where
 * s(x) = x + s(-x). The exponential has no large argument. */
static tn_status build_binary(tn_build *b, const void *options) {
  const binary_options *o = options;
  tn_val x = tn_build_in(b, 0), target;
  TN_TRY(loss_target(b, &target));
  tn_val log_part = tn_log(b, tn_affine(b, tn_exp(b, tn_neg(b, tn_abs(b, x))), 1, 1));
  tn_val below = tn_add(b, tn_maximum(b, tn_neg(b, x), loss_number_like(b, x, 0)), log_part);
  tn_val both = tn_mul(b, tn_affine(b, target, o->positive - 1, 1), below);
  tn_build_yield(b, 0, tn_add(b, tn_mul(b, tn_affine(b, target, -1, 1), x), both));
  return TN_OK;
}
static const tn_layer_kind binary_cross_entropy = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "binary_cross_entropy",
                    "negative log-likelihood of yes or no per element, of scores before the sigmoid",
                    binary_options, binary_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "scores and targets from 0 to 1, two tensors of one shape",
    .example = "targets = label: f32[10]\nloss = binary_cross_entropy(positive=3)",
    .build = build_binary};

/* The first input, and its weight; numbers that are no floats, as f32. */
static tn_status loss_value(tn_build *b, const void *options) {
  (void)options;
  tn_val x = tn_build_in(b, 0);
  if (!tn_dtype_is_float(tn_val_type(b, x)->dtype)) x = tn_to_dtype(b, x, TN_F32);
  tn_build_yield(b, 0, x);
  if (tn_build_n_in(b) > 1) tn_build_yield(b, 1, tn_build_in(b, 1));
  return TN_OK;
}
static const tn_layer_kind value = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "value",
                          "any value of the model; a second one weighs its elements, as a mask does"),
    .role = TN_LAYER_LOSS,
    .min_in = 1,
    .max_in = 2,
    .types = "one tensor (N, ...), and weights that broadcast to it",
    .example = "loss =\n    cross_entropy\n    small: value(weight=0.01) <- fc * fc",
    .build = loss_value};

TN_PLUGIN(losses, "0.1.0", "MIT", &cross_entropy.item, &binary_cross_entropy.item, &mse.item, &l1.item,
          &huber.item, &value.item, &loss_ctc.item, &metric_accuracy.item, &metric_top_k.item,
          &metric_perplexity.item, &metric_mean_iou.item, &metric_dice.item, &metric_f1.item,
          &metric_precision.item, &metric_recall.item, &metric_mae.item, &metric_rmse.item, &metric_mape.item,
          &metric_r2.item, &metric_auroc.item, &metric_average_precision.item, &metric_jaccard.item,
          &metric_coco_map.item, &metric_word_error_rate.item)
