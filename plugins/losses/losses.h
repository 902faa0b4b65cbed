/* plugins/losses/losses.h: functions that losses and metrics share. */
#pragma once

#include <stdbool.h>

#include "tenon/ops.h"
#include "tenon/plugin/layer.h"

typedef struct cross_entropy_options {
  double label_smoothing, z_loss;
  int64_t ignore, axis;
  tn_floats weights; /* of the classes; empty: all are 1 */
} cross_entropy_options;
/* cross_entropy.c: yields the cross entropy of scores and target, the first two inputs, and its weight. */
/* `smoothing`: label smoothing that moves, a scalar; 0: that of the options. */
tn_status yield_cross_entropy(tn_build *b, const cross_entropy_options *o, tn_val smoothing);

/* class_weights.c: the weights of the classes, along dimension `axis` of as many as `like` has, so that they
 * broadcast to it. TN_EINVAL: their number is another one. */
tn_status class_weights(tn_build *b, const cross_entropy_options *o, tn_val like, tn_val *weights);
/* Yields the loss of targets that are class numbers, and its weight: PyTorch's weighted mean. `loss` and
 * `counts` are those without weights and label smoothing. */
tn_status yield_weighted(tn_build *b, const cross_entropy_options *o, tn_val loss, tn_val counts);

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
