/* plugins/losses/areas.c: metrics that compare where classes are found with where they are meant: mean_iou
 * and dice, means over samples and classes, and f1, precision, recall and jaccard, of the counts of a whole
 * pass. */
#include "plugins/losses/losses.h"

#include <math.h>

typedef struct area_options {
  int64_t axis, ignore;
  double threshold;
  int32_t average; /* AVERAGE_... */
  int64_t class;
} area_options;

enum { AVERAGE_MACRO = 0, AVERAGE_MICRO = 1 };

/* Elements of a sample that have a class, (N, classes, elements), as bool. */
typedef struct areas {
  tn_val found, meant; /* in the prediction, in the target; elements that count alone */
  int64_t n, classes;
} areas;

/* ---- classes in predictions and targets ---- */

/* (N, ...) of class numbers as (N, classes, elements): where each class is. */
static tn_val area_of_numbers(tn_build *b, tn_val numbers, const areas *a) {
  const tn_type column = {TN_I32, 3, {1, a->classes, 1}};
  const int64_t rows[] = {a->n, 1, a->n > 0 ? tn_type_count(tn_val_type(b, numbers)) / a->n : 0};
  return tn_eq(b, tn_reshape(b, tn_to_dtype(b, numbers, TN_I32), 3, rows), tn_iota(b, &column, 1));
}

/* Scores and class numbers. */
static tn_status areas_of_classes(tn_build *b, const area_options *o, areas *a) {
  tn_val scores = tn_build_in(b, 0), target = tn_build_in(b, 1), best = tn_argmax(b, scores, o->axis);
  if (!tn_type_same_dims(tn_val_type(b, best), tn_val_type(b, target)))
    return tn_fail(b, TN_EINVAL, "axis",
                   "the targets have other dimensions than the scores without axis %lld", (long long)o->axis);
  const int64_t rows[] = {a->n, 1, a->n > 0 ? tn_type_count(tn_val_type(b, target)) / a->n : 0};
  tn_val counted = tn_reshape(b, targets_counted(b, target, o->ignore), 3, rows);
  a->found = tn_and(b, area_of_numbers(b, best, a), counted);
  a->meant = tn_and(b, area_of_numbers(b, target, a), counted);
  return TN_OK;
}

/* (N, classes, ...), or with the classes last, as (N, classes, elements). */
static tn_val area_by_class(tn_build *b, tn_val value, int32_t last, const areas *a) {
  int64_t all = a->n * a->classes, elements = all > 0 ? tn_type_count(tn_val_type(b, value)) / all : 0;
  const int64_t behind[] = {a->n, elements, a->classes}, front[] = {a->n, a->classes, elements};
  static const int64_t turned[] = {0, 2, 1};
  return last ? tn_transpose(b, tn_reshape(b, value, 3, behind), 3, turned) : tn_reshape(b, value, 3, front);
}

/* Scores and a yes or no for each: several labels a sample, or one. */
static void areas_of_labels(tn_build *b, const area_options *o, int32_t last, areas *a) {
  tn_val scores = tn_build_in(b, 0), target = tn_build_in(b, 1);
  tn_val counted = targets_counted(b, target, o->ignore);
  tn_val yes = tn_gt(b, tn_to_dtype(b, target, TN_F32), tn_scalar(b, TN_F32, 0.5));
  tn_val found = tn_gt(b, scores, loss_number_like(b, scores, o->threshold));
  a->found = area_by_class(b, tn_and(b, found, counted), last, a);
  a->meant = area_by_class(b, tn_and(b, yes, counted), last, a);
}

static tn_status areas_find(tn_build *b, const area_options *o, areas *a) {
  const tn_type *scores = tn_val_type(b, tn_build_in(b, 0)), *target = tn_val_type(b, tn_build_in(b, 1));
  int64_t axis = o->axis < 0 ? o->axis + scores->rank : o->axis;
  int32_t labels = tn_type_same_dims(scores, target), flat = labels && scores->rank == 1;
  if (!flat && (axis < 1 || axis >= scores->rank || (labels && axis != 1 && axis != scores->rank - 1)))
    return tn_fail(b, TN_EINVAL, "axis", "%lld is out of range for rank-%d scores", (long long)o->axis,
                   (int)scores->rank);
  a->n = tn_val_dim(b, tn_build_in(b, 0), 0);
  a->classes = flat ? 1 : scores->dims[axis];
  if (!labels) return areas_of_classes(b, o, a);
  areas_of_labels(b, o, !flat && axis != 1, a);
  return TN_OK;
}

static tn_val area_size(tn_build *b, tn_val area) {
  const int64_t last = 2;
  return tn_reduce_sum(b, tn_to_dtype(b, area, TN_F32), 1, &last, 0);
}

static tn_val area_both(tn_build *b, const areas *a) { return area_size(b, tn_and(b, a->found, a->meant)); }

/* ---- means over samples and classes ---- */

/* (N, 2): the sum of part / whole over the classes that a sample has, and their number. */
static tn_status area_yield_ratio(tn_build *b, int64_t n, tn_val part, tn_val whole) {
  const int64_t classes = 1, column[] = {n, 1};
  tn_val one = tn_scalar(b, TN_F32, 1);
  tn_val sums[] = {tn_div(b, part, tn_maximum(b, whole, one)), tn_minimum(b, whole, one)};
  for (int i = 0; i < 2; i++) sums[i] = tn_reshape(b, tn_reduce_sum(b, sums[i], 1, &classes, 0), 2, column);
  tn_build_yield(b, 0, tn_concat(b, 2, sums, 1));
  return TN_OK;
}

static double ratio_of_sums(const double *sums, const tn_type *row) {
  (void)row;
  return sums[1] > 0 ? sums[0] / sums[1] : (double)NAN;
}

static tn_status build_mean_iou(tn_build *b, const void *given) {
  areas a;
  TN_TRY(areas_find(b, given, &a));
  return area_yield_ratio(b, a.n, area_both(b, &a), area_size(b, tn_or(b, a.found, a.meant)));
}

static tn_status build_dice(tn_build *b, const void *given) {
  areas a;
  TN_TRY(areas_find(b, given, &a));
  tn_val both = tn_affine(b, area_both(b, &a), 2, 0);
  return area_yield_ratio(b, a.n, both, tn_add(b, area_size(b, a.found), area_size(b, a.meant)));
}

#define AREA_ROWS(axis_text)                                                                                 \
  TN_OPT(area_options, axis, TN_OPT_INT, axis_text, NULL, "the dimension of the classes"),                   \
      TN_OPT(area_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),           \
      TN_OPT(                                                                                                \
          area_options, threshold, TN_OPT_FLOAT, "0", NULL,                                                  \
          "of targets in the shape of the scores: a score above it means yes; 0: half the probability, of "  \
          "scores before the sigmoid")

static const tn_option area_rows[] = {AREA_ROWS("1"), TN_OPT_END};

#define AREA_TYPES                                                                                           \
  "scores (N, classes, ...), targets (N, ...) of class numbers; or both of one shape: yes or no for each "   \
  "class"
#define AREA_EXAMPLE(name)                                                                                   \
  "inputs = image: f32[3, 8, 8]\ntargets = mask: i32[8, 8]\nlayers = head: conv2d(2, kernel=1)\n"            \
  "loss = cross_entropy(axis=1)\nmetrics = " name

const tn_layer_kind metric_mean_iou = {
    .item = TN_ITEM(
        tn_layer_kind, TN_LAYER, "mean_iou",
        "elements that have a class in the prediction and in the target, as a part of those that have it in "
        "one of them: the mean over all samples and the classes that each has",
        area_options, area_rows),
    .role = TN_LAYER_METRIC,
    .min_in = 2,
    .max_in = 2,
    .types = AREA_TYPES,
    .example = AREA_EXAMPLE("mean_iou"),
    .build = build_mean_iou,
    .of_sums = ratio_of_sums};

const tn_layer_kind metric_dice = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "dice",
                                                   "twice the elements that have a class in the prediction "
                                                   "and in the target, as a part of both together: "
                                                   "the mean over all samples and the classes that each has",
                                                   area_options, area_rows),
                                   .role = TN_LAYER_METRIC,
                                   .min_in = 2,
                                   .max_in = 2,
                                   .types = AREA_TYPES,
                                   .example = AREA_EXAMPLE("dice"),
                                   .build = build_dice,
                                   .of_sums = ratio_of_sums};

/* ---- counts of a whole pass ---- */

/* (N, 3, classes): elements that are found and meant, found, and meant. */
static tn_status build_counts(tn_build *b, const void *given) {
  const area_options *o = given;
  areas a;
  TN_TRY(areas_find(b, o, &a));
  const int64_t one[] = {a.n, 1, a.classes}, classes = 2;
  tn_val parts[] = {area_both(b, &a), area_size(b, a.found), area_size(b, a.meant)};
  for (int i = 0; i < 3; i++) parts[i] = tn_reshape(b, parts[i], 3, one);
  tn_val counts = tn_concat(b, 3, parts, 1);
  if (o->class >= a.classes)
    return tn_fail(b, TN_EINVAL, "class", "class is %lld, expected one of the %lld classes",
                   (long long)o->class, (long long)a.classes);
  if (o->class >= 0) counts = tn_slice_axis(b, counts, 2, o->class, o->class + 1);
  if (o->average == AVERAGE_MICRO) counts = tn_reduce_sum(b, counts, 1, &classes, 1);
  tn_build_yield(b, 0, counts);
  return TN_OK;
}

/* The mean of part / whole over the classes that are found or meant at all; 0 for one of them without a
 * whole.
 */
static double count_mean(const double *counts, const tn_type *row, double both, double found, double meant) {
  int64_t n = row->dims[1], seen = 0;
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    double whole = found * counts[n + k] + meant * counts[2 * n + k];
    if (counts[n + k] + counts[2 * n + k] == 0) continue;
    sum += whole > 0 ? both * counts[k] / whole : 0;
    seen++;
  }
  return seen > 0 ? sum / (double)seen : (double)NAN;
}
static double f1_of_counts(const double *counts, const tn_type *row) {
  return count_mean(counts, row, 2, 1, 1);
}
static double precision_of_counts(const double *counts, const tn_type *row) {
  return count_mean(counts, row, 1, 1, 0);
}
static double recall_of_counts(const double *counts, const tn_type *row) {
  return count_mean(counts, row, 1, 0, 1);
}

/* both / (found + meant - both) */
static double jaccard_of_counts(const double *counts, const tn_type *row) {
  int64_t n = row->dims[1], seen = 0;
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    double either = counts[n + k] + counts[2 * n + k] - counts[k];
    if (either == 0) continue;
    sum += counts[k] / either;
    seen++;
  }
  return seen > 0 ? sum / (double)seen : (double)NAN;
}

static const tn_option count_rows[] = {
    TN_OPT(area_options, average, TN_OPT_ENUM, "macro", "macro|micro",
           "macro: the mean over the classes that appear; micro: of the counts of all classes together"),
    TN_OPT(area_options, class, TN_OPT_INT, "-1", ">= -1", "of this class alone; -1: of all"),
    AREA_ROWS("-1"), TN_OPT_END};

#define COUNT_METRIC(name_, doc_)                                                                            \
  const tn_layer_kind metric_##name_ = {                                                                     \
      .item = TN_ITEM(tn_layer_kind, TN_LAYER, #name_, doc_, area_options, count_rows),                      \
      .role = TN_LAYER_METRIC,                                                                               \
      .min_in = 2,                                                                                           \
      .max_in = 2,                                                                                           \
      .types =                                                                                               \
          "scores (N, classes), or with the classes along axis, targets of class numbers; or both of one "   \
          "shape: yes or no for each class",                                                                 \
      .example = "metrics = accuracy, " #name_ "(micro)",                                                    \
      .build = build_counts,                                                                                 \
      .of_sums = name_##_of_counts}

COUNT_METRIC(f1, "the harmonic mean of precision and recall, over all samples of a pass");
COUNT_METRIC(precision, "the part of the predictions of a class that is right, over all samples of a pass");
COUNT_METRIC(recall, "the part of the targets of a class that is predicted, over all samples of a pass");
COUNT_METRIC(jaccard, "elements that have a class in the prediction and in the target, as a part of those "
                      "that have it in one of "
                      "them, over all samples of a pass: the mean IoU of Cityscapes and Pascal VOC");
