#include "core/step/values/finite_rows.h"

#include <math.h>

#include "core/base/element.h"

bool tn_scores_are_numbers(const float *scores, int64_t n) {
  int32_t numbers = 1, finite = n == 0;
  for (int64_t i = 0; i < n; i++) {
    numbers &= scores[i] < INFINITY; /* false for NaN */
    finite |= scores[i] > -INFINITY;
  }
  return numbers && finite;
}

/* Without a branch for each element: sessions ask after each step. */
static bool finite_floats(const float *values, int64_t n) {
  int32_t finite = 1;
  for (int64_t i = 0; i < n; i++) finite &= fabsf(values[i]) < INFINITY;
  return finite;
}

bool tn_row_is_finite(const tn_type *row, const void *values) {
  int64_t n = tn_dtype_is_float(row->dtype) ? tn_type_count(row) : 0;
  if (row->dtype == TN_F32)
    return row->rank == 1 ? tn_scores_are_numbers(values, n) : finite_floats(values, n);
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(tn_element_load(row->dtype, values, i))) return false;
  return true;
}

bool tn_finite_rows_count(tn_finite_rows *f, int64_t row, bool finite) {
  if (!finite && f->bad++ == 0) f->first = row;
  f->rows++;
  return finite;
}

tn_status tn_finite_rows_judge(const void *handle, const tn_finite_rows *f, const char *name) {
  if (f->bad == 0) return TN_OK;
  return tn_failf(
      handle, TN_ENONFINITE,
      "%lld of %lld outputs are not finite, first that of '%s'; look for the same in the input, or "
      "for weights of a training that diverged",
      (long long)f->bad, (long long)f->rows, name);
}
