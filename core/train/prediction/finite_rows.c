#include "core/train/prediction/finite_rows.h"

#include <math.h>

bool tn_scores_are_numbers(const float *scores, int64_t n) {
  bool finite = n == 0;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(scores[i]) || scores[i] == INFINITY) return false;
    finite = finite || isfinite(scores[i]);
  }
  return finite;
}

bool tn_row_is_finite(const tn_type *row, const void *values) {
  int64_t n = tn_type_count(row);
  if (row->dtype == TN_F32 && row->rank == 1) return tn_scores_are_numbers(values, n);
  for (int64_t i = 0; row->dtype == TN_F32 && i < n; i++)
    if (!isfinite(((const float *)values)[i])) return false;
  for (int64_t i = 0; row->dtype == TN_F64 && i < n; i++)
    if (!isfinite(((const double *)values)[i])) return false;
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
