/* plugins/losses/losses.c: cross_entropy and mse. A loss yields a value and a weight per element. */
#include "plugins/losses/losses.h"

static const tn_option cross_entropy_rows[] = {
    TN_OPT(cross_entropy_options, label_smoothing, TN_OPT_FLOAT, "0", "[0, 1)",
           "part of the target that is spread evenly over all classes"),
    TN_OPT(cross_entropy_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),
    TN_OPT(cross_entropy_options, axis, TN_OPT_INT, "-1", NULL, "the dimension of the classes"), TN_OPT_END};

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

static tn_status build_mse(tn_build *b, const void *options) {
  (void)options;
  tn_val x = tn_build_in(b, 0), target = tn_build_in(b, 1);
  if (!tn_type_same_dims(tn_val_type(b, x), tn_val_type(b, target)))
    return tn_fail(b, TN_EINVAL, NULL,
                   "the value and the target have different shapes, expected the same shape");
  tn_val error = tn_sub(b, x, tn_cast(b, target, tn_val_type(b, x)->dtype));
  tn_build_yield(b, 0, tn_mul(b, error, error));
  return TN_OK;
}
static const tn_layer_kind mse = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "mse", "squared error per element"),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "two tensors of one shape",
    .example = "targets = label: f32[10]\nloss = mse",
    .build = build_mse};

TN_PLUGIN(losses, "0.1.0", "MIT", &cross_entropy.item, &mse.item, &metric_accuracy.item, &metric_top_k.item,
          &metric_perplexity.item)
