/* plugins/losses/losses.c: cross_entropy, and any value as a loss. */
#include "plugins/losses/losses.h"

static const tn_option cross_entropy_rows[] = {
    TN_OPT_WITH(cross_entropy_options, label_smoothing, TN_OPT_FLOAT, TN_OPT_SCHEDULABLE, "0", "[0, 1)",
                "part of the target that is spread evenly over all classes"),
    TN_OPT(cross_entropy_options, z_loss, TN_OPT_FLOAT, "0", "[0, 1e30]",
           "factor of log(sum(exp(scores)))^2, which keeps the scores near 0 (PaLM has 1e-4)"),
    TN_OPT(cross_entropy_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),
    TN_OPT(cross_entropy_options, axis, TN_OPT_INT, "-1", NULL, "the dimension of the classes"),
    TN_OPT(cross_entropy_options, weights, TN_OPT_FLOATS, "[]", "[1e-30, 1e30]",
           "a factor for each class; empty: 1. The mean divides by the sum of the targets' factors"),
    TN_OPT_END};

static tn_status build_cross_entropy(tn_build *b, const void *given) {
  return yield_cross_entropy(b, given, tn_build_option_value(b, "label_smoothing"));
}

const tn_layer_kind loss_cross_entropy = {
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

/* The first input, and its weight; numbers that are no floats, as f32. */
static tn_status losses_value(tn_build *b, const void *options) {
  (void)options;
  tn_val x = tn_build_in(b, 0);
  if (!tn_dtype_is_float(tn_val_type(b, x)->dtype)) x = tn_to_dtype(b, x, TN_F32);
  tn_build_yield(b, 0, x);
  if (tn_build_n_in(b) > 1) tn_build_yield(b, 1, tn_build_in(b, 1));
  return TN_OK;
}
const tn_layer_kind loss_value = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "value",
                          "any value of the model; a second one weighs its elements, as a mask does"),
    .role = TN_LAYER_LOSS,
    .min_in = 1,
    .max_in = 2,
    .types = "one tensor (N, ...), and weights that broadcast to it",
    .example = "loss =\n    cross_entropy\n    small: value(weight=0.01) <- fc * fc",
    .build = losses_value};
