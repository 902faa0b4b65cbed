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
} tn_predict_classes;

/* `row` is the type of an output without the batch. Rows are scores of classes where the model's loss is a
 * cross entropy. The names are those of the target with so many classes. Names of another number are told in
 * the log. */
void tn_predict_classes_start(tn_run *run, const tn_type *row, int32_t top, tn_predict_classes *classes);
void tn_predict_classes_finish(tn_predict_classes *classes);

/* [{"class": 3, "name": "cat", "probability": 0.9}, ...]: softmax over the scores, the most probable first.
 * NULL: out of memory. */
json_t *tn_predict_classes_row(const tn_predict_classes *classes, const float *scores);
