/* core/step/programs/plan_report.h: the JSON report of a set of programs. */
#pragma once

#include <jansson.h>

#include "core/step/programs/programs.h"

/* The report of `tenon plan` and plan.json. */
tn_status tn_plan_report(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                         json_t **json);

/* The estimated or measured milliseconds of a run, in which collectives run beside the other launches. */
double tn_plan_cost_ms(const tn_program *program);
