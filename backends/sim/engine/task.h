/* backends/sim/engine/task.h: tasks: functions that run on a stream, such as the communicator's collectives.
 */
#pragma once

#include "tenon/plugin/backend.h"

typedef struct tn_sim_device tn_sim_device;

enum {
  TN_SIM_PENDING = -1, /* returned by the body of a task that is not done */
  TN_SIM_RANGES = 4,
  TN_SIM_ARG_BYTES = 192
};

typedef struct tn_sim_range {
  const void *address; /* of the device, or of its staging memory */
  uint64_t bytes;
} tn_sim_range;

/* A task. The name is valid until the stream has been waited for. */
typedef struct tn_sim_task {
  const char *name; /* "all_reduce of bucket 2" */
  /* Called on the device's engine when the stream reaches the task, and again while it returns
   * TN_SIM_PENDING; other streams of the device run in between, so devices that wait for each other do not
   * deadlock. `arg` is the task's own copy, which the body may change. A failure, with its text in `env` by
   * tn_fail, stops the stream. */
  tn_status (*body)(tn_env *env, void *arg);
  int32_t n_reads, n_writes;
  tn_sim_range reads[TN_SIM_RANGES], writes[TN_SIM_RANGES]; /* on the stream's own device */
} tn_sim_task;

/* Enqueues the task with a copy of `bytes` <= TN_SIM_ARG_BYTES of `arg`. No allocation, no lock. While the
 * stream's device captures, the task is recorded; each replay starts from the copy made here. */
tn_status tn_sim_push_task(tn_env *env, void *stream, const tn_sim_task *task, const void *arg, size_t bytes);

/* Makes the engine run its pending tasks again; any thread. (The engine also does so at intervals.) */
void tn_sim_wake(tn_sim_device *device);

/* The host address of a device address; other addresses are returned unchanged. For engines and their teams
 * only. */
void *tn_sim_real(const void *address);
