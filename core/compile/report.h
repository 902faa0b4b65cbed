/* core/compile/report.h: what `tenon plan` says about a program. */
#ifndef TN_CORE_COMPILE_REPORT_H
#define TN_CORE_COMPILE_REPORT_H

#include <jansson.h>

#include "core/compile/program.h"

/* {hash, ops: [{name, op, kernel, backend, layout, flops, bytes, cost_ms, measured,
 * rejected: [{kernel, reason}]}], fallbacks: [], launches, peak_bytes, bound_bytes}. peak_bytes is the
 * arena. The caller's reference. */
tn_status tn_program_report(const tn_program *program, json_t **report);

#endif
