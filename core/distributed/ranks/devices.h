/* core/distributed/ranks/devices.h: the devices of a run, their number, and the communicator between them. */
#pragma once

#include "core/exec/collective.h"
#include "core/exec/device/device.h"
#include "core/run/run.h"

/* Opens the device of [backend] use for rank number run->local of this process, and its tuner. While planning
 * the device is described and not opened. */
tn_status tn_run_open_device(tn_run *run, tn_device **device);
/* A rank's part of [data] batch, which must be divisible by the number of ranks. */
tn_status tn_run_rank_batch(tn_run *run, int32_t split, int64_t *batch);

/* Sets run->locals and run->ranks to the number that [distributed] devices asks for: of this process. */
tn_status tn_devices_count(tn_run *run, const tn_device *device);

/* Tells a device's target of the ranks and the links between them, after they were counted: the costs of
 * collectives. */
void tn_devices_connect(const tn_run *run, tn_device *device);

/* Opens one more device, that of rank number run->local of this process, of the same backend as the first,
 * with its measurements of kernels. */
tn_status tn_devices_open(tn_run *run, tn_device *first, tn_device **device);

/* The communicator that [distributed] names, or else the first that serves the device's backend and suits the
 * places of the ranks, with its options. */
tn_status tn_devices_communicator(tn_run *run, const tn_device *device, const tn_communicator **kind,
                                  const void **options);
