/* plugins/losses/cross_entropy.c: the cross entropy of class scores, for the loss and for perplexity. */
#include "plugins/losses/losses.h"

enum { NO_CLASS = -100 };

/* from + (to - from) part */
static tn_val cross_entropy_blend(tn_build *b, tn_val from, tn_val to, tn_val part) {
  part = tn_to_dtype(b, part, tn_val_type(b, from)->dtype);
  return tn_add(b, from, tn_mul(b, tn_sub(b, to, from), part));
}

/* -sum(target log_softmax(x)) for a target with a part for each class, which label smoothing makes more even.
 */
static tn_status build_soft_cross_entropy(tn_build *b, const cross_entropy_options *o, tn_val smoothing) {
  tn_val x = tn_build_in(b, 0), target = tn_to_dtype(b, tn_build_in(b, 1), tn_val_type(b, x)->dtype);
  const tn_type *type = tn_val_type(b, x);
  int64_t axis = o->axis < 0 ? o->axis + type->rank : o->axis;
  if (!tn_type_same_dims(type, tn_val_type(b, target)))
    return tn_fail(
        b, TN_EINVAL, NULL,
        "a target with a part for each class has another shape than the scores, expected the same");
  if (o->z_loss > 0)
    return tn_fail(b, TN_EINVAL, "z_loss",
                   "it goes with class numbers, and this target has a part for each "
                   "class");
  if (o->ignore != NO_CLASS)
    return tn_fail(b, TN_EINVAL, "ignore",
                   "ignore is a class number, and this target has a part for each class");
  if (axis < 0 || axis >= type->rank)
    return tn_fail(b, TN_EINVAL, "axis", "%lld is out of range for rank-%d scores", (long long)o->axis,
                   (int)type->rank);
  double even = 1 / (double)type->dims[axis];
  if (smoothing != 0)
    target = cross_entropy_blend(b, target, loss_number_like(b, target, even), smoothing);
  else if (o->label_smoothing > 0)
    target = tn_affine(b, target, 1 - o->label_smoothing, o->label_smoothing * even);
  tn_val each = tn_mul(b, target, tn_log_softmax(b, x, axis));
  if (o->weights.n > 0) {
    tn_val weights = 0;
    TN_TRY(class_weights(b, o, each, &weights));
    each = tn_mul(b, each, weights);
  }
  tn_build_yield(b, 0, tn_neg(b, tn_reduce_sum(b, each, 1, &axis, 0)));
  return TN_OK;
}

/* 1 for each target that counts, in the type of the loss. */
static tn_val cross_entropy_counts(tn_build *b, const cross_entropy_options *o, tn_val loss) {
  return tn_to_dtype(b, targets_counted(b, tn_build_in(b, 1), o->ignore), tn_val_type(b, loss)->dtype);
}

/* The loss of class numbers, with z_loss log(Z)^2 of the targets that count (Chowdhery et al., 2022). log(Z)
 * is a result of the op. */
static tn_val cross_entropy_with_z(tn_build *b, const cross_entropy_options *o, double smoothing) {
  tn_val loss = tn_cross_entropy(b, tn_build_in(b, 0), tn_build_in(b, 1), o->axis, o->ignore, smoothing);
  if (o->z_loss <= 0) return loss;
  tn_val log_z = tn_op_result(b, loss, 1), counts = cross_entropy_counts(b, o, loss);
  tn_val square = tn_affine(b, tn_mul(b, log_z, log_z), o->z_loss, 0);
  return tn_add(b, loss, tn_mul(b, square, counts));
}

/* The loss is linear in label smoothing that moves: 0 and a half have its ends. */
static tn_val cross_entropy_of_classes(tn_build *b, const cross_entropy_options *o, tn_val smoothing) {
  if (smoothing == 0) return cross_entropy_with_z(b, o, o->weights.n > 0 ? 0 : o->label_smoothing);
  tn_val sharp = cross_entropy_with_z(b, o, 0), half = cross_entropy_with_z(b, o, 0.5);
  return cross_entropy_blend(b, sharp, half, tn_affine(b, smoothing, 2, 0));
}

tn_status yield_cross_entropy(tn_build *b, const cross_entropy_options *o, tn_val smoothing) {
  tn_val target = tn_build_in(b, 1);
  bool weighted = o->weights.n > 0;
  if (targets_are_soft(b, tn_build_in(b, 0), target)) return build_soft_cross_entropy(b, o, smoothing);
  if (weighted && smoothing != 0)
    return tn_fail(b, TN_EINVAL, "weights",
                   "weights beside a schedule of label_smoothing, expected one of the two");
  if (weighted && o->z_loss > 0)
    return tn_fail(b, TN_EINVAL, "z_loss", "beside weights of classes, expected one of both");
  tn_val loss = cross_entropy_of_classes(b, o, smoothing), counts = cross_entropy_counts(b, o, loss);
  if (weighted) return yield_weighted(b, o, loss, counts);
  tn_build_yield(b, 0, loss);
  tn_build_yield(b, 1, counts);
  return TN_OK;
}
