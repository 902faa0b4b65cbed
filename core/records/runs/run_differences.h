/* core/records/runs/run_differences.h: what a resumed run does otherwise than the run before. */
#pragma once

#include <jansson.h>

#include "core/exec/device/device.h"
#include "core/run/run.h"

/* "made_for" of plan.json: the backend in use, its libraries, the device. NULL: no memory. */
json_t *tn_run_made_for(const tn_device *device);

/* Compares FOLDER/config.ini and the record of plan.json with this run: adds a remark for each difference,
 * and sets *same to whether the recorded plan may be repeated: backend, versions of the plugins that have
 * kernels, and all settings that reach the compiler are the same. `plan` NULL: it could not be read.
 * TN_EINVAL: the optimizer, its ema or swa_from, or the frozen parameters differ, or --weights asks for
 * other weights: the run cannot go on so. */
tn_status tn_run_compare(tn_run *run, const tn_device *device, const char *folder, const json_t *plan,
                         bool *same);

/* After tn_run_compare, when the epoch of the checkpoint's last step is known: TN_EINVAL if a group thaws at
 * another epoch than before, and was to be trained by now either way. */
tn_status tn_run_check_thaw(tn_run *run, const char *folder, int64_t epoch);

/* Appends a line to run->remarks. */
TN_PRINTF(2, 3) tn_status tn_run_remark(tn_run *run, const char *format, ...);
