#include "core/conformance/trial/spread.h"

#include <math.h>
#include <string.h>

enum { SPREAD_RUNS = 8 };

/* The few runs are a sample of the roundings, whose extremes are beyond it. */
static const double SPREAD_BEYOND = 2;

static tn_status spread_run(tn_reference *reference, int32_t dtype, const char *output, const double *before,
                            double *spread) {
  tn_type type;
  for (uint64_t seed = 1; seed <= SPREAD_RUNS; seed++) {
    tn_reference_disturb(reference, dtype, seed);
    TN_TRY(tn_reference_run(reference));
    const double *now = tn_reference_output(reference, output, &type);
    for (int64_t i = 0; i < tn_type_count(&type); i++)
      if (isfinite(now[i]) && isfinite(before[i])) *spread = fmax(*spread, fabs(now[i] - before[i]));
  }
  *spread *= SPREAD_BEYOND;
  return TN_OK;
}

tn_status tn_spread_measure(tn_env *env, tn_reference *reference, int32_t dtype, const char *output,
                            double *spread) {
  tn_type type;
  *spread = 0;
  if (!tn_reference_is_narrow(reference, dtype)) return TN_OK;
  const double *values = tn_reference_output(reference, output, &type);
  size_t n = (size_t)tn_type_count(&type);
  double *before = tn_alloc(env, (n + 1) * sizeof *before);
  if (before == NULL) return TN_ENOMEM;
  memcpy(before, values, n * sizeof *before);
  tn_status status = spread_run(reference, dtype, output, before, spread);
  tn_reference_disturb(reference, dtype, 0);
  if (status == TN_OK) status = tn_reference_run(reference);
  tn_release(env, before);
  return status;
}
