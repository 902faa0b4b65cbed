#include "core/infer/prediction/class_scores.h"

#include <math.h>
#include <stdlib.h>

#include "core/step/values/finite_rows.h"
#include "core/run/result.h"

tn_status tn_class_scores_start(const void *handle, int64_t classes, int64_t samples, tn_class_scores *s) {
  *s = (tn_class_scores){.classes = classes, .samples = samples};
  size_t n = (size_t)classes, cells = tn_size_mul(n, n), all = tn_size_mul((size_t)samples, n);
  s->confusion = tn_alloc(handle, tn_size_mul(cells, sizeof *s->confusion));
  s->labels = tn_alloc(handle, tn_size_mul((size_t)samples, sizeof *s->labels));
  if (all <= TN_MOST_SCORES) s->scores = tn_alloc(handle, tn_size_mul(all, sizeof *s->scores));
  bool lost = s->confusion == NULL || s->labels == NULL || (all <= TN_MOST_SCORES && s->scores == NULL);
  return lost ? TN_ENOMEM : TN_OK;
}

void tn_class_scores_free(const void *handle, tn_class_scores *s) {
  tn_release(handle, s->confusion);
  tn_release(handle, s->scores);
  tn_release(handle, s->labels);
}

/* ---- one sample ---- */

static int64_t scores_largest(const float *scores, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (scores[i] > scores[best]) best = i;
  return best;
}

double tn_class_scores_sum(const float *scores, int64_t n, double largest) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += exp((double)scores[i] - largest);
  return sum;
}

bool tn_class_scores_add(tn_class_scores *s, const float *scores, int64_t label, int64_t *predicted,
                         double *log_probability, double *certainty) {
  *predicted = scores_largest(scores, s->classes);
  if (!tn_scores_are_numbers(scores, s->classes)) return false;
  if (label < 0 || label >= s->classes || s->counted == s->samples) return false;
  double largest = (double)scores[*predicted];
  double log_sum = largest + log(tn_class_scores_sum(scores, s->classes, largest));
  *log_probability = (double)scores[label] - log_sum;
  *certainty = exp(largest - log_sum);
  s->confusion[label * s->classes + *predicted]++;
  s->labels[s->counted] = (int32_t)label;
  for (int64_t k = 0; s->scores != NULL && k < s->classes; k++)
    s->scores[s->counted * s->classes + k] = (float)((double)scores[k] - log_sum);
  s->counted++;
  return true;
}

/* ---- the area under the curve ---- */

typedef struct scored_sample {
  float score;
  int32_t positive;
} scored_sample;

static int scores_compare(const void *x, const void *y) {
  const scored_sample *a = x, *b = y;
  return (a->score > b->score) - (a->score < b->score);
}

/* The share of pairs of a sample of the class and one of another class in which the first has the larger
 * score; equal scores count half (Mann and Whitney). From ranks: samples with equal scores share their mean
 * rank. */
static double scores_area(scored_sample *sorted, int64_t n) {
  double positives = 0, ranks = 0;
  qsort(sorted, (size_t)n, sizeof *sorted, scores_compare);
  for (int64_t i = 0, end; i < n; i = end) {
    double equal = 0;
    for (end = i; end < n && (end == i || sorted[end].score == sorted[i].score); end++)
      equal += sorted[end].positive;
    positives += equal;
    ranks += equal * ((double)(i + 1) + (double)end) / 2;
  }
  double negatives = (double)n - positives;
  if (positives == 0 || negatives == 0) return (double)NAN;
  return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
}

static double scores_area_of_class(const tn_class_scores *s, int64_t class, scored_sample *room) {
  if (s->scores == NULL || room == NULL) return (double)NAN;
  for (int64_t i = 0; i < s->counted; i++)
    room[i] = (scored_sample){s->scores[i * s->classes + class], s->labels[i] == class};
  return scores_area(room, s->counted);
}

/* ---- results ---- */

static json_t *scores_describe_class(const tn_class_scores *s, int64_t class, const char *name, double area) {
  double right = (double)s->confusion[class * s->classes + class], predicted = 0, samples = 0;
  for (int64_t k = 0; k < s->classes; k++) {
    predicted += (double)s->confusion[k * s->classes + class];
    samples += (double)s->confusion[class * s->classes + k];
  }
  double f1 = predicted + samples > 0 ? 2 * right / (predicted + samples) : (double)NAN;
  return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "name", name, "samples", (json_int_t)samples,
                   "precision", tn_json_real(right / predicted), "recall", tn_json_real(right / samples),
                   "f1", tn_json_real(f1), "auc", tn_json_real(area));
}

json_t *tn_class_scores_by_class(const void *handle, const tn_class_scores *s, const json_t *names) {
  json_t *list = json_array();
  scored_sample *room = tn_alloc(handle, tn_size_mul((size_t)s->counted + 1, sizeof *room));
  for (int64_t k = 0; k < s->classes; k++)
    json_array_append_new(list,
                          scores_describe_class(s, k, json_string_value(json_array_get(names, (size_t)k)),
                                                scores_area_of_class(s, k, room)));
  tn_release(handle, room);
  return list;
}

json_t *tn_class_scores_means(const json_t *by_class) {
  static const char *const numbers[] = {"precision", "recall", "f1", "auc"};
  json_t *means = json_object();
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    double sum = 0;
    int64_t n = 0;
    size_t k;
    const json_t *class;
    json_array_foreach(by_class, k, class) {
      const json_t *value = json_object_get(class, numbers[i]);
      n += json_is_number(value);
      sum += json_number_value(value);
    }
    json_object_set_new(means, numbers[i], n > 0 ? json_real(sum / (double)n) : json_null());
  }
  return means;
}

json_t *tn_class_scores_confusion(const tn_class_scores *s) {
  json_t *rows = json_array();
  for (int64_t i = 0; i < s->classes; i++) {
    json_t *row = json_array();
    for (int64_t k = 0; k < s->classes; k++)
      json_array_append_new(row, json_integer(s->confusion[i * s->classes + k]));
    json_array_append_new(rows, row);
  }
  return rows;
}
