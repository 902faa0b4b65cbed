/* core/conformance/trial/finite_differences.h: a gradient rule against differences of the op's own values, in
 * f64 on the reference: (f(x + h) - f(x - h)) / 2h, whose error is of the order h^2 + 1e-16 / h. */
#ifndef TN_CORE_CONFORMANCE_TRIAL_FINITE_DIFFERENCES_H
#define TN_CORE_CONFORMANCE_TRIAL_FINITE_DIFFERENCES_H

#include "core/conformance/trial/trial.h"

/* One drawn use; trial->dtype must be f64. The site's device is not used. Some results are left out of the
 * loss at times, so that rules meet results without a gradient. */
tn_status tn_differences_run(const tn_trial_site *site, const tn_trial *trial, tn_verdict *verdict);

#endif
