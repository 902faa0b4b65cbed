/* core/conformance/suite.h: the cases of a suite. */
#pragma once

#include "core/conformance/results/results.h"

/* All selected trials of one case in one dtype, with gradients for float types. */
tn_status tn_suite_run_dtype(tn_suite *suite, const tn_case *c, int32_t dtype);
/* Compares the gradient of a case with finite differences, in f64. */
tn_status tn_suite_run_differences(tn_suite *suite, const tn_case *c);
/* An op, drawn from its schema: comparisons and differences. */
tn_status tn_suite_run_schema(tn_suite *suite, const char *op);
/* The device's own cases, then those of the core's ops. */
tn_status tn_suite_run_core(tn_suite *suite);
/* The ops and kernels of options->plugin. */
tn_status tn_suite_run_plugin(tn_suite *suite);
