/* core/train/feed/find_batch_run.h: [data] batch = auto. */
#pragma once

#include "core/exec/device/device.h"
#include "core/run/run.h"

/* Where [data] batch is auto, finds the batch by plans and puts it into the settings and into the
 * configuration, which the run folder keeps. Otherwise it does nothing, also where a resumed run has taken
 * its number (core/records/runs). Before programs are built. */
tn_status tn_run_find_batch(tn_run *run, tn_device *device);
