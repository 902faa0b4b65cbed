/* plugins/losses/metrics.c: metrics over class scores that are means: accuracy, top_k and perplexity. */
#include "plugins/losses/losses.h"

typedef struct metric_options {
  int64_t axis, ignore, k;
} metric_options;

static const tn_option accuracy_rows[] = {
    TN_OPT(metric_options, axis, TN_OPT_INT, "-1", NULL, "the dimension of the classes"),
    TN_OPT(metric_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),
    TN_OPT_END};
static const tn_option top_k_rows[] = {
    TN_OPT(metric_options, k, TN_OPT_INT, "5", ">= 1",
           "a target is right if it is among the k highest scores"),
    TN_OPT(metric_options, axis, TN_OPT_INT, "-1", NULL, "the dimension of the classes"),
    TN_OPT(metric_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),
    TN_OPT_END};

/* Yields `right` (bool) as the value; the weight is 0 for an ignored target, else 1. `seen` is a number where
 * all scores are numbers, and NaN where one is not: then the value is NaN, since no class is predicted. An
 * ignored target may have any scores. */
static tn_status yield_hits(tn_build *b, tn_val right, tn_val seen, tn_val target, int64_t ignore) {
  tn_val counted = targets_counted(b, target, ignore);
  tn_val value =
      tn_where(b, tn_eq(b, seen, seen), tn_to_dtype(b, right, TN_F32), tn_to_dtype(b, seen, TN_F32));
  tn_build_yield(b, 0, tn_where(b, counted, value, tn_scalar(b, TN_F32, 0.0)));
  tn_build_yield(b, 1, tn_to_dtype(b, counted, TN_F32));
  return TN_OK;
}

/* The class number of each target; of one with a part for each class, the class with the greatest. */
static tn_val target_classes(tn_build *b, int64_t axis) {
  tn_val target = tn_build_in(b, 1);
  return targets_are_soft(b, tn_build_in(b, 0), target) ? tn_argmax(b, target, axis) : target;
}

static tn_status build_accuracy(tn_build *b, const void *given) {
  const metric_options *o = given;
  tn_val target = target_classes(b, o->axis);
  tn_val best = tn_to_dtype(b, tn_argmax(b, tn_build_in(b, 0), o->axis), tn_val_type(b, target)->dtype);
  tn_val largest = tn_reduce_max(b, tn_build_in(b, 0), 1, &o->axis, 0);
  return yield_hits(b, tn_eq(b, best, target), largest, target, o->ignore);
}
const tn_layer_kind metric_accuracy = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "accuracy",
                                                       "fraction of targets with the highest score",
                                                       metric_options, accuracy_rows),
                                       .role = TN_LAYER_METRIC,
                                       .min_in = 2,
                                       .max_in = 2,
                                       .types = "scores and targets as of cross_entropy",
                                       .example = "metrics = accuracy",
                                       .build = build_accuracy};

/* Without sorting: a target is among the k highest scores if fewer than k scores are higher than its own. A
 * score that is neither higher nor not higher is NaN, or its own is: then so is their difference, and the
 * number. */
static tn_status build_top_k(tn_build *b, const void *given) {
  const metric_options *o = given;
  tn_val scores = tn_build_in(b, 0), target = target_classes(b, o->axis);
  const tn_type *type = tn_val_type(b, scores);
  int64_t axis = o->axis < 0 ? o->axis + type->rank : o->axis;
  if (axis < 0 || axis >= type->rank)
    return tn_fail(b, TN_EINVAL, "axis", "%lld is out of range for rank-%d scores", (long long)o->axis,
                   type->rank);
  tn_type classes = *type, column = *type;
  column.dims[axis] = 1;
  classes.dtype = tn_val_type(b, target)->dtype;
  tn_val index = tn_iota(b, &classes, axis), wanted = tn_reshape(b, target, column.rank, column.dims);
  tn_val zero = tn_scalar(b, type->dtype, 0.0), one = tn_scalar(b, type->dtype, 1.0);
  tn_val own = tn_reduce_sum(b, tn_where(b, tn_eq(b, index, wanted), scores, zero), 1, &axis, 1);
  tn_val below = tn_where(b, tn_le(b, scores, own), zero, tn_sub(b, scores, own));
  tn_val higher = tn_reduce_sum(b, tn_where(b, tn_gt(b, scores, own), one, below), 1, &axis, 0);
  tn_val right = tn_lt(b, higher, loss_number_like(b, higher, (double)o->k));
  return yield_hits(b, right, higher, target, o->ignore);
}
const tn_layer_kind metric_top_k = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "top_k",
                                                    "fraction of targets among the k highest scores",
                                                    metric_options, top_k_rows),
                                    .role = TN_LAYER_METRIC,
                                    .min_in = 2,
                                    .max_in = 2,
                                    .types = "scores and targets as of cross_entropy",
                                    .example = "metrics = accuracy, top_k(3)",
                                    .build = build_top_k};

static const tn_option perplexity_rows[] = {
    TN_OPT(cross_entropy_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),
    TN_OPT(cross_entropy_options, axis, TN_OPT_INT, "-1", NULL, "the dimension of the classes"), TN_OPT_END};

/* label_smoothing has no row and so is 0. */
static tn_status build_perplexity(tn_build *b, const void *given) { return yield_cross_entropy(b, given, 0); }
const tn_layer_kind metric_perplexity = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "perplexity",
                    "e to the power of the mean cross entropy of all targets; better when small",
                    cross_entropy_options, perplexity_rows),
    .role = TN_LAYER_METRIC,
    .min_in = 2,
    .max_in = 2,
    .types = "scores and targets as of cross_entropy",
    .example = "metrics = perplexity",
    .build = build_perplexity,
    .of_mean = TN_OF_MEAN_EXP,
    .falls = 1};
