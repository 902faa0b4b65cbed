/* core/conformance/trial/hull.h: for each element of an output, the values that rounding of the operands
 * explains. A pointwise op at numbers of very different sizes has no single largest element to compare errors
 * with, so the reference evaluates operands one rounding above and below, too, and with denormal numbers as
 * zero, since a device may flush them. */
#pragma once

#include "core/conformance/cases/cases.h"

/* How operands are changed. */
enum { TN_HULL_PLAIN = 0, TN_HULL_ABOVE = 1, TN_HULL_BELOW = 2, TN_HULL_FLUSHED = 3, TN_HULL_VARIANTS = 4 };

typedef struct tn_hull {
  tn_type type;
  double *low, *high; /* low > high: no variant has a number */
  bool *nan;          /* some variant is not a number */
} tn_hull;

/* An operand of a dtype in a variant. */
double tn_hull_operand(int32_t variant, int32_t dtype, double v);
/* Adds the values of one variant; *hull is zero before the first. */
tn_status tn_hull_add(tn_env *env, tn_hull *hull, const tn_type *type, const double *values);
/* Whether `found` is element i; `tolerance` is relative to the element, or to 1. */
bool tn_hull_accepts(const tn_hull *hull, int64_t i, double found, double tolerance);
void tn_hull_free(tn_env *env, tn_hull *hull);
