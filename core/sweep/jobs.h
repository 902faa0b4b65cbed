/* core/sweep/jobs.h: how many runs of a sweep go at a time. */
#pragma once

#include <jansson.h>

#include "core/run/run.h"

typedef struct tn_sweep_jobs {
  int32_t jobs;    /* at least 1 */
  int32_t threads; /* of each: [run] threads; 0: as the configuration says */
} tn_sweep_jobs;

/* [sweep] jobs; or so many as processors and memory allow, at most `runs`. `plan` is the result of
 * tn_run_plan. On a device with memory of its own there is one at a time. Processors are divided among the
 * runs, unless the configuration gives [run] threads. */
tn_sweep_jobs tn_sweep_choose_jobs(tn_run *run, const json_t *plan, int64_t runs);
