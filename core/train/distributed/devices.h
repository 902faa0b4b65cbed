/* core/train/distributed/devices.h: [distributed] and [backend]: the devices of a run, how many train
 * together, and the communicator between them. */
#ifndef TN_CORE_TRAIN_DISTRIBUTED_DEVICES_H
#define TN_CORE_TRAIN_DISTRIBUTED_DEVICES_H

#include "core/exec/collective.h"
#include "core/exec/device/device.h"
#include "core/train/run.h"

/* Opens the device that the configuration asks for; the one whose number is the run's rank. */
tn_status tn_run_open_device(tn_run *run, tn_device **device);
/* A rank's part of [data] batch. It must divide without rest. */
tn_status tn_run_rank_batch(tn_run *run, int32_t split, int64_t *batch);

/* How many devices like this one [distributed] devices asks for; run->ranks is set. */
tn_status tn_devices_count(tn_run *run, const tn_device *device);

/* One more device of the run, number `rank`, of the same backend as the first. */
tn_status tn_devices_open(tn_run *run, const tn_device *first, tn_device **device);

/* The communicator for devices like this one: the one that is asked for by name, else the first that serves
 * their family. */
tn_status tn_devices_communicator(tn_run *run, const tn_device *device, const tn_communicator **kind,
                                  const void **options);

#endif
