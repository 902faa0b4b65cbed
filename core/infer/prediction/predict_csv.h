/* core/infer/prediction/predict_csv.h: predictions as a CSV file: a row for each sample, and a column for
 * each number; of scores of classes the most probable class, and the probability of each. */
#pragma once

#include "core/infer/prediction/predict_classes.h"
#include "core/infer/prediction/predict_outputs.h"

/* Whether the file that the user names is such a one. */
bool tn_predict_csv_wanted(const tn_predict_outputs *outputs);
tn_status tn_predict_csv_write(const tn_predict_outputs *outputs, const tn_predict_classes *classes);

/* Whether the outputs are few numbers, which lines can show. */
bool tn_predict_values_fit(const tn_forward *forward);
/* {"price": 12.5, "box": [1, 2, 3, 4]}: the outputs of sample i. NULL: out of memory. */
json_t *tn_predict_values_row(const tn_predict_outputs *outputs, int64_t i);
