/* core/step/values/finite_rows.h: whether a model's outputs are finite. Commands and sessions ask here,
 * so that none of them passes a NaN on without a word. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"
#include "tenon/tensor.h"

/* Whether scores can be ordered: none is NaN or +infinity, and one is finite. A class that a model rules out
 * has -infinity. */
bool tn_scores_are_numbers(const float *scores, int64_t n);
/* Whether the output of a sample is finite: a row of floats. A vector of f32 may be scores. Integers are. */
bool tn_row_is_finite(const tn_type *row, const void *values);

/* The rows of a command that are not finite. */
typedef struct tn_finite_rows {
  int64_t rows, bad;
  int64_t first; /* the number of the first bad one */
} tn_finite_rows;

/* Counts row number `row`. Returns `finite`. */
bool tn_finite_rows_count(tn_finite_rows *f, int64_t row, bool finite);
/* TN_ENONFINITE where a row is bad, with their number, and `name`, of the first. */
tn_status tn_finite_rows_judge(const void *handle, const tn_finite_rows *f, const char *name);
