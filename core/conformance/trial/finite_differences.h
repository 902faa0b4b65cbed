/* core/conformance/trial/finite_differences.h: compares a gradient rule with central differences of the op,
 * in f64 on the reference: (f(x + h) - f(x - h)) / 2h, with an error of order h^2 + 1e-16 / h. */
#pragma once

#include "core/conformance/trial/trial.h"

/* One drawn use; trial->dtype is f64. The site's device is not used. Some draws leave results out of the
 * loss, so that a rule is also tested with results that have no gradient. */
tn_status tn_finite_differences_run(const tn_trial_site *site, const tn_trial *trial, tn_verdict *verdict);
