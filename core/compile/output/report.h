/* core/compile/output/report.h: the report on a program for `tenon plan`. */
#pragma once

#include <jansson.h>

#include "core/compile/program.h"

/* {hash, ops: [{name, op, kernel, backend, layout, flops, bytes, cost_ms, measured,
 * rejected: [{kernel, reason}]}], fallbacks: [{op, layer, where, backend, reason, bytes, launch}], cuts,
 * launches, bytes, peak_bytes, bound_bytes}. bytes is the sum of those of the ops; peak_bytes is the size of
 * the arena and of the host memory.
 * The caller's reference. */
tn_status tn_program_report(const tn_program *program, json_t **report);

/* The bytes of the operands and results of a launch, each once: the least that it moves. The cost of a fused
 * group also counts intermediate values. */
double tn_step_moved_bytes(const tn_step *step);

/* Adds captured_parts, and uncaptured: [{op, launch, reason}], the launches that are enqueued in every run
 * beside captured ones. captures: the device captures; otherwise 0 and []. */
tn_status tn_program_report_captures(const tn_program *program, bool captures, json_t *report);

/* The kernels that are lost for a match, each of its variants having declined: [{kernel, matches, reason}],
 * `matches` their number, `reason` that of the first. NULL: out of memory. */
json_t *tn_declines_report(const tn_target *target);

/* The reason and the cost of one step on the fallback. The texts belong to the program. */
typedef struct tn_fallback {
  const char *op; /* "conv2d of layer1.0.conv1" */
  const char *layer, *where, *family, *reason;
  int64_t bytes; /* transferred, in both directions */
} tn_fallback;
/* `step` is a step of the cut. */
tn_fallback tn_program_fallback(const tn_program *program, const tn_segment *cut, int32_t step);
