/* plugins/losses/losses.h: the metrics, for the descriptor, and what they share with losses. */
#pragma once

#include <stdbool.h>

#include "tenon/ops.h"
#include "tenon/plugin/layer.h"

extern const tn_layer_kind metric_accuracy, metric_top_k, metric_perplexity; /* metrics.c */
extern const tn_layer_kind metric_mean_iou, metric_dice;                     /* areas.c */
extern const tn_layer_kind metric_f1, metric_precision, metric_recall, metric_jaccard;
extern const tn_layer_kind metric_mae, metric_rmse, metric_mape, metric_r2; /* regression.c */
extern const tn_layer_kind metric_auroc, metric_average_precision;          /* ranking.c */
extern const tn_layer_kind metric_coco_map;                                 /* detection.c */
extern const tn_layer_kind metric_word_error_rate;                          /* word_errors.c */
extern const tn_layer_kind loss_ctc;                                        /* ctc.c */

typedef struct cross_entropy_options {
  double label_smoothing;
  int64_t ignore, axis;
  tn_floats weights; /* of the classes; empty: all are 1 */
} cross_entropy_options;
/* cross_entropy.c: yields the cross entropy of scores and target, the first two inputs, and its weight. */
tn_status yield_cross_entropy(tn_build *b, const cross_entropy_options *o);

/* class_weights.c: the weights of the classes, along dimension `axis` of as many as `like` has, so that they
 * broadcast to it. TN_EINVAL: their number is another one. */
tn_status class_weights(tn_build *b, const cross_entropy_options *o, tn_val like, tn_val *weights);
/* Yields the loss of targets that are class numbers, and its weight: PyTorch's weighted mean. `loss` and
 * `counts` are those without weights and label smoothing. */
tn_status yield_weighted(tn_build *b, const cross_entropy_options *o, tn_val loss, tn_val counts);

/* difference.c, of two tensors of one shape: the target in the dtype of the first input; that input minus it.
 */
tn_status loss_target(tn_build *b, tn_val *target);
tn_status loss_error(tn_build *b, tn_val *error);

/* A scalar of the dtype of `like`. */
static inline tn_val loss_number_like(tn_build *b, tn_val like, double value) {
  return tn_scalar(b, tn_val_type(b, like)->dtype, value);
}

/* Whether each target counts: its class is not `ignore`. */
static inline tn_val targets_counted(tn_build *b, tn_val target, int64_t ignore) {
  return tn_ne(b, target, loss_number_like(b, target, (double)ignore));
}

/* Whether the target has a number for each class, and no class number. */
static inline bool targets_are_soft(tn_build *b, tn_val scores, tn_val target) {
  const tn_type *x = tn_val_type(b, scores), *t = tn_val_type(b, target);
  return tn_dtype_is_float(t->dtype) && t->rank == x->rank;
}
