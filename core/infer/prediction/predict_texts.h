/* core/infer/prediction/predict_texts.h: the most probable tokens behind texts, for `tenon predict`. */
#pragma once

#include "core/step/values/finite_rows.h"
#include "core/infer/prediction/predict_inputs.h"

#include <jansson.h>

/* Whether the inputs are texts: files that the source of [data] does not read by their paths, for a model
 * whose only input is a sequence of numbers of tokens. Errors are those of [model] inputs. */
tn_status tn_predict_texts_wanted(const tn_predict_inputs *inputs, bool *wanted);
/* {"rows": files, "predictions": [{"input", "top": [{"class", "name", "probability"}, ...]}, ...]}. `finite`
 * counts the texts. */
tn_status tn_predict_texts(const tn_predict_inputs *inputs, tn_finite_rows *finite, json_t **result);
