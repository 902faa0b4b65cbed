/* core/infer/prediction/class_scores.h: what scores of classes say of a classifier: the confusion matrix,
 * precision, recall, F1 and the area under the ROC curve of each class. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "core/base/env.h"

typedef struct tn_class_scores {
  int64_t classes, samples, counted;
  int64_t *confusion; /* [classes][classes]: true, predicted */
  float *scores;      /* [samples][classes]: log-probabilities; NULL: too many for the area under the curve */
  int32_t *labels;    /* [samples] */
} tn_class_scores;

/* The most scores that are kept for the areas. */
enum { TN_MOST_SCORES = 1 << 26 };

tn_status tn_class_scores_start(const void *handle, int64_t classes, int64_t samples, tn_class_scores *s);
void tn_class_scores_free(const void *handle, tn_class_scores *s);

/* The sum of exp(score - largest). */
double tn_class_scores_sum(const float *scores, int64_t n, double largest);

/* Adds a sample: the model's scores, and its class. *predicted is the class with the largest score,
 * *log_probability that of the true class: the score minus the logarithm of the sum of exponentials;
 * *certainty the probability of the predicted one, which is a number where the true class has none
 * (-infinity). A label outside of 0 .. classes - 1, and scores that are not numbers (finite_rows.h), count
 * for nothing and give false. */
bool tn_class_scores_add(tn_class_scores *s, const float *scores, int64_t label, int64_t *predicted,
                         double *log_probability, double *certainty);

/* [{"name", "samples", "precision", "recall", "f1", "auc"}, ...]: one object for each class; null where a
 * number is not defined, as is the precision of a class that is never predicted. */
json_t *tn_class_scores_by_class(const void *handle, const tn_class_scores *s, const json_t *names);
/* The means over the classes that have a number: {"precision", "recall", "f1", "auc"}. */
json_t *tn_class_scores_means(const json_t *by_class);
/* [[5, 0], [1, 4]] */
json_t *tn_class_scores_confusion(const tn_class_scores *s);
