/* core/train/programs/plan_report.h: compiled programs as JSON. */
#ifndef TN_CORE_TRAIN_PROGRAMS_PLAN_REPORT_H
#define TN_CORE_TRAIN_PROGRAMS_PLAN_REPORT_H

#include <jansson.h>

#include "core/train/programs/programs.h"

/* What a compiled set of programs will do, as plan.json has it. */
tn_status tn_plan_report(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                         json_t **json);

/* What the collectives of one update hand to the communicator: how many, and how many bytes on each rank. */
typedef struct tn_traffic {
  int64_t collectives, bytes;
} tn_traffic;
tn_traffic tn_programs_traffic(const tn_run *run, const tn_program_set *set);
#endif
