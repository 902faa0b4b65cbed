/* core/train/distributed/devices.h: [distributed]: how many devices train together, what each of them takes,
 * and who carries sums between them. */
#ifndef TN_CORE_TRAIN_DISTRIBUTED_DEVICES_H
#define TN_CORE_TRAIN_DISTRIBUTED_DEVICES_H

#include "core/exec/collective.h"
#include "core/train/distributed/ranks.h"
#include "core/train/run.h"

/* How many devices like this one [distributed] devices asks for; run->ranks is set. */
tn_status tn_devices_count(tn_run *run, const tn_device *device);

/* One more device of the run, number `rank`, of the same backend as the first. */
tn_status tn_devices_open(tn_run *run, const tn_device *first, tn_device **device);

/* The communicator for devices like this one: the one that is asked for by name, else the first that serves
 * their family. */
tn_status tn_devices_communicator(tn_run *run, const tn_device *device, const tn_communicator **kind,
                                  const void **options);

/* What the ranks' programs are must be the same: TN_ECOMM on all ranks, with both hashes, where they are
 * not. */
tn_status tn_devices_compare_plans(tn_rank_set *ranks, tn_env *env, int32_t rank, uint64_t hash);
/* Of all programs. */
uint64_t tn_devices_plan_hash(const tn_program_set *set);

/* What the collectives of one update hand to the communicator: how many, and how many bytes on each rank. */
typedef struct tn_traffic {
  int64_t collectives, bytes;
} tn_traffic;
tn_traffic tn_devices_traffic(const tn_run *run, const tn_program_set *set);

#endif
