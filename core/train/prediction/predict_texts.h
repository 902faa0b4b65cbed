/* core/train/prediction/predict_texts.h: the most probable tokens behind texts, for `tenon predict`. */
#ifndef TN_CORE_TRAIN_PREDICTION_PREDICT_TEXTS_H
#define TN_CORE_TRAIN_PREDICTION_PREDICT_TEXTS_H

#include "core/train/prediction/predict_inputs.h"

#include <jansson.h>

/* Whether the inputs are texts: files that the source of [data] cannot read as samples, for a model whose
 * data are texts. */
bool tn_predict_texts_wanted(const tn_predict_inputs *inputs);
/* {"rows": files, "predictions": [{"input", "top": [{"class", "name", "probability"}, ...]}, ...]}. */
tn_status tn_predict_texts(const tn_predict_inputs *inputs, json_t **result);

#endif
