/* core/infer/prediction/predict_classes.h: rows of class scores as the most probable classes, in JSON. */
#pragma once

#include <jansson.h>

#include "core/run/run.h"

typedef struct tn_predict_classes {
  json_t *names; /* a list with a name for each class, borrowed from `document`; NULL: unknown */
  json_t *document;
  int64_t classes; /* 0: the rows are not scores of classes */
  int64_t unfit;   /* names of the weights that are not so many as the classes, and not used; 0: none */
  int32_t top;
  bool independent; /* the classes are labels, each of which is there or not: a sigmoid for each score */
} tn_predict_classes;

/* The scores that the model's first cross entropy takes, if it has one: of classes, or of labels by a binary
 * one.
 */
enum { TN_SCORES_NONE = 0, TN_SCORES_OF_CLASSES, TN_SCORES_OF_LABELS };
int32_t tn_predict_scores(tn_run *run);

/* `row` is the type of an output without the batch. Rows are scores of classes where the model's loss is a
 * cross entropy, and of labels where it is a binary one; a single label has the name of its target. The names
 * are those of the target with so many classes. Names of another number are told in the log. */
void tn_predict_classes_start(tn_run *run, const tn_type *row, int32_t top, tn_predict_classes *classes);
void tn_predict_classes_finish(tn_predict_classes *classes);

/* The probability of a score: of its class by a softmax over all scores, of a label by a sigmoid. */
typedef struct tn_score_scale {
  double largest, sum;
} tn_score_scale;
tn_score_scale tn_predict_scale(const tn_predict_classes *classes, const float *scores);
double tn_predict_probability(const tn_predict_classes *classes, const tn_score_scale *all, float score);
/* [{"class": 3, "name": "cat", "probability": 0.9}, ...], the most probable first. NULL: out of memory. */
json_t *tn_predict_classes_row(const tn_predict_classes *classes, const float *scores);
