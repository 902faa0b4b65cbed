/* core/compile/output/plan_json.h: a program as plan.json keeps it, to be compared and replayed. */
#pragma once

#include <jansson.h>

#include "core/compile/program.h"

/* {name, hash, arena_bytes, inputs, launches: [{op, layer, kernel, plugin, version, variant, id, key, reads,
 * writes, workspace, cost_s}]}. The caller's reference. */
tn_status tn_program_record(const tn_program *program, json_t **record);
/* All kernels that could have been chosen: [{kernel, plugin, version}]. The caller's reference. */
tn_status tn_program_record_kernels(const tn_program *program, json_t **kernels);
