/* core/compile/output/report.h: what `tenon plan` says about a program. */
#ifndef TN_CORE_COMPILE_OUTPUT_REPORT_H
#define TN_CORE_COMPILE_OUTPUT_REPORT_H

#include <jansson.h>

#include "core/compile/program.h"

/* {hash, ops: [{name, op, kernel, backend, layout, flops, bytes, cost_ms, measured,
 * rejected: [{kernel, reason}]}], fallbacks: [{op, layer, where, backend, reason, bytes, launch}], cuts,
 * launches, peak_bytes, bound_bytes}. peak_bytes is the arena and the host memory of what falls back.
 * The caller's reference. */
tn_status tn_program_report(const tn_program *program, json_t **report);

/* What falling back costs and why it is done, for one launch. Texts are the program's. */
typedef struct tn_fallback {
  const char *op; /* "conv2d of layer1.0.conv1" */
  const char *layer, *where, *family, *reason;
  int64_t bytes; /* over the bus, both ways */
} tn_fallback;
/* `step` is one of the cut's. */
tn_fallback tn_program_fallback(const tn_program *program, const tn_segment *cut, int32_t step);
/* How often a run of the program waits for the device. */
int32_t tn_program_cuts(const tn_program *program);

#endif
