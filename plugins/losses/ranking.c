/* plugins/losses/ranking.c: metrics of the order of all samples: auroc and average_precision. They keep the
 * scores of a pass, so they are exact; a histogram of scores would not be. */
#include "plugins/losses/losses.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranking_options {
  int64_t ignore;
} ranking_options;

static const tn_option ranking_rows[] = {
    TN_OPT(ranking_options, ignore, TN_OPT_INT, "-100", NULL, "targets of this class are ignored"),
    TN_OPT_END};

/* Scores and a yes or no for each: rows (2, labels), where a target that is ignored is NaN. */
static tn_status ranking_of_labels(tn_build *b, const ranking_options *o, int64_t n, int64_t labels) {
  const int64_t one[] = {n, 1, labels};
  tn_val target = tn_build_in(b, 1), counted = targets_counted(b, target, o->ignore);
  tn_val number = tn_where(b, counted, tn_to_dtype(b, target, TN_F32), tn_scalar(b, TN_F32, (double)NAN));
  tn_val parts[] = {tn_reshape(b, tn_to_dtype(b, tn_build_in(b, 0), TN_F32), 3, one),
                    tn_reshape(b, number, 3, one)};
  tn_build_yield(b, 0, tn_concat(b, 2, parts, 1));
  return TN_OK;
}

/* Scores and a class number: rows (classes + 1), log-probabilities and the class, which is -1 where it is
 * ignored. */
static tn_status ranking_of_classes(tn_build *b, const ranking_options *o, int64_t n) {
  const int64_t column[] = {n, 1};
  tn_val scores = tn_to_dtype(b, tn_build_in(b, 0), TN_F32), target = tn_build_in(b, 1);
  tn_val class = tn_where(b, targets_counted(b, target, o->ignore), target, loss_number_like(b, target, -1));
  tn_val parts[] = {tn_log_softmax(b, scores, 1), tn_reshape(b, tn_to_dtype(b, class, TN_F32), 2, column)};
  tn_build_yield(b, 0, tn_concat(b, 2, parts, 1));
  return TN_OK;
}

static tn_status build_ranking(tn_build *b, const void *given) {
  const tn_type *scores = tn_val_type(b, tn_build_in(b, 0)), *target = tn_val_type(b, tn_build_in(b, 1));
  int32_t labels = tn_type_same_dims(scores, target);
  if (scores->rank < 1 || scores->rank > 2 || (!labels && (scores->rank != 2 || target->rank != 1)))
    return tn_fail(
        b, TN_EINVAL, NULL,
        "scores of rank %d and targets of rank %d, expected scores (N, classes) and class numbers (N), or "
        "both (N, labels)",
        (int)scores->rank, (int)target->rank);
  if (!labels) return ranking_of_classes(b, given, scores->dims[0]);
  return ranking_of_labels(b, given, scores->dims[0], scores->rank == 2 ? scores->dims[1] : 1);
}

/* ---- of all rows ---- */

typedef struct ranked {
  float score;
  int32_t yes;
} ranked;

/* The highest score first. */
static int ranked_compare(const void *x, const void *y) {
  const ranked *a = x, *b = y;
  return (a->score < b->score) - (a->score > b->score);
}

/* The scores of class or label k, in their order. Returns their number; -1: one of them is NaN. */
static int64_t ranking_sort(const float *rows, int64_t n, const tn_type *row, int64_t k, ranked *sorted) {
  int64_t numbers = tn_type_count(row), labels = row->rank == 2 ? row->dims[1] : 0, count = 0;
  for (int64_t i = 0; i < n; i++, rows += numbers + 1) {
    float target = labels > 0 ? rows[labels + k] : rows[numbers - 1];
    if (isnan(rows[k])) return -1;
    if (isnan(target) || (labels == 0 && target < 0)) continue;
    sorted[count++] = (ranked){rows[k], labels > 0 ? target > 0.5f : target == (float)k};
  }
  qsort(sorted, (size_t)count, sizeof *sorted, ranked_compare);
  return count;
}

/* The samples with the score of the one at i, and how many of them are yes; their end is returned. */
static int64_t ranked_equal(const ranked *sorted, int64_t n, int64_t i, double *yes) {
  int64_t end = i;
  for (*yes = 0; end < n && sorted[end].score == sorted[i].score; end++) *yes += sorted[end].yes;
  return end;
}

/* The share of pairs of a yes and a no in which the yes has the higher score; equal ones count half (Mann and
 * Whitney, 1947). NaN: there are no pairs. */
static double ranked_area(const ranked *sorted, int64_t n) {
  double right = 0, before = 0, yes;
  for (int64_t i = 0, end; i < n; i = end) {
    end = ranked_equal(sorted, n, i, &yes);
    right += ((double)(end - i) - yes) * (before + yes / 2);
    before += yes;
  }
  return right / (before * ((double)n - before));
}

/* The sum over scores of the precision down to it, times the part of all yes that it adds. NaN: there is no
 * yes. */
static double ranked_precision(const ranked *sorted, int64_t n) {
  double sum = 0, before = 0, yes;
  for (int64_t i = 0, end; i < n; i = end) {
    end = ranked_equal(sorted, n, i, &yes);
    before += yes;
    sum += yes * before / (double)end;
  }
  return sum / before;
}

/* The mean over the classes or labels that have a number. */
static tn_status ranking_mean(const void *handle, const float *rows, int64_t n, const tn_type *row,
                              double (*measure)(const ranked *sorted, int64_t n), double *value) {
  int64_t columns = row->rank == 2 ? row->dims[1] : row->dims[0] - 1, counted = 0, scored = 0;
  ranked *sorted = tn_new(handle, ((size_t)n + 1) * sizeof *sorted);
  if (sorted == NULL) return TN_ENOMEM;
  double sum = 0;
  for (int64_t k = 0; k < columns && scored >= 0; k++) {
    scored = ranking_sort(rows, n, row, k, sorted);
    double one = scored > 0 ? measure(sorted, scored) : (double)NAN;
    if (isnan(one)) continue;
    sum += one;
    counted++;
  }
  tn_delete(handle, sorted);
  *value = counted > 0 && scored >= 0 ? sum / (double)counted : (double)NAN;
  return TN_OK;
}

static tn_status auroc_of_rows(const void *handle, const float *rows, int64_t n, const tn_type *row,
                               double *value) {
  return ranking_mean(handle, rows, n, row, ranked_area, value);
}
static tn_status average_precision_of_rows(const void *handle, const float *rows, int64_t n,
                                           const tn_type *row, double *value) {
  return ranking_mean(handle, rows, n, row, ranked_precision, value);
}

#define RANKING_METRIC(name_, doc_)                                                                          \
  const tn_layer_kind metric_##name_ = {                                                                     \
      .item = TN_ITEM(tn_layer_kind, TN_LAYER, #name_, doc_, ranking_options, ranking_rows),                 \
      .role = TN_LAYER_METRIC,                                                                               \
      .min_in = 2,                                                                                           \
      .max_in = 2,                                                                                           \
      .types = "scores (N, classes) and class numbers (N): each class against the others, the mean over "    \
               "classes; or both (N, labels) or (N): yes or no for each, the mean over labels",              \
      .example = "metrics = accuracy, " #name_,                                                              \
      .build = build_ranking,                                                                                \
      .of_rows = name_##_of_rows}

RANKING_METRIC(auroc,
               "area under the ROC curve, exact, from the scores of a whole validation; training has none");
RANKING_METRIC(
    average_precision,
    "average precision, the area under the curve of precision and recall, exact, from the scores of a whole "
    "validation; training has none");
