/* core/conformance/trial/hull.c: the values that rounding of operands explains. */
#include "core/conformance/trial/hull.h"

#include "core/conformance/reference/reference.h"

static double hull_epsilon(int32_t dtype) {
  return dtype == TN_F16 ? 0x1p-10 : dtype == TN_BF16 ? 0x1p-7 : dtype == TN_F64 ? 0x1p-52 : 0x1p-23;
}

double tn_hull_operand(int32_t variant, int32_t dtype, double v) {
  switch (variant) {
  case TN_HULL_ABOVE: return v * (1 + hull_epsilon(dtype));
  case TN_HULL_BELOW: return v * (1 - hull_epsilon(dtype));
  case TN_HULL_FLUSHED: return fabs(v) < tn_domain_smallest_normal(dtype) ? copysign(0, v) : v;
  default: return v;
  }
}

static tn_status hull_start(tn_env *env, tn_hull *hull, const tn_type *type) {
  size_t n = (size_t)tn_type_count(type) + 1;
  hull->type = *type;
  hull->low = tn_alloc(env, n * sizeof *hull->low);
  hull->high = tn_alloc(env, n * sizeof *hull->high);
  hull->nan = tn_alloc(env, n * sizeof *hull->nan);
  if (hull->low == NULL || hull->high == NULL || hull->nan == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    hull->low[i] = INFINITY;
    hull->high[i] = -INFINITY;
  }
  return TN_OK;
}

/* A result beyond the largest number of its dtype is an infinity. */
tn_status tn_hull_add(tn_env *env, tn_hull *hull, const tn_type *type, const double *values) {
  if (hull->low == NULL) TN_TRY(hull_start(env, hull, type));
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double v = tn_reference_round(type->dtype, values[i]);
    if (v != v)
      hull->nan[i] = true;
    else {
      hull->low[i] = fmin(hull->low[i], v);
      hull->high[i] = fmax(hull->high[i], v);
    }
  }
  return TN_OK;
}

static double hull_allowance(double bound, double tolerance) {
  return isfinite(bound) ? tolerance * fmax(1, fabs(bound)) : 0;
}

bool tn_hull_accepts(const tn_hull *hull, int64_t i, double found, double tolerance) {
  if (found != found) return hull->nan[i];
  return found >= hull->low[i] - hull_allowance(hull->low[i], tolerance) &&
         found <= hull->high[i] + hull_allowance(hull->high[i], tolerance);
}

void tn_hull_free(tn_env *env, tn_hull *hull) {
  tn_release(env, hull->low);
  tn_release(env, hull->high);
  tn_release(env, hull->nan);
  *hull = (tn_hull){.low = NULL};
}
