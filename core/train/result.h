/* core/train/result.h: results as JSON text. */
#ifndef TN_CORE_TRAIN_RESULT_H
#define TN_CORE_TRAIN_RESULT_H

#include <jansson.h>

#include "core/train/run.h"

/* {"loss": 0.1, "accuracy": 0.97} */
json_t *tn_metrics_json(const tn_metric *metrics, int32_t n);
/* plan.c: what a compiled set of programs will do, as plan.json has it. */
tn_status tn_plan_report(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                         json_t **json);
/* Peak resident memory of the process, VmHWM of /proc/self/status, in MiB; 0 where there is none. */
double tn_peak_rss_mib(void);
/* bench_load.c: TN_BENCH_LOAD; options of 0 are chosen. */
tn_status tn_bench_load(tn_run *run, const tn_bench_options *options, char **json);
/* Consumes the object; *text is the caller's (tn_string_free). NULL stands for an object that memory did
 * not suffice for. */
tn_status tn_json_take(tn_run *run, json_t *json, char **text);

#endif
