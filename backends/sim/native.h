/* backends/sim/native.h: the interface "sim.1": what a plugin of another shared object, such as a
 * communicator, gets from tn_backend.native of a simulated device. */
#pragma once

#include "backends/sim/engine/task.h"

#define TN_SIM_NATIVE "sim.1"

typedef struct tn_sim_native {
  uint32_t struct_size;
  tn_sim_device *device;
  void *stream; /* NULL: the handle of the device alone */
  /* The functions of task.h. */
  tn_status (*push_task)(tn_env *env, void *stream, const tn_sim_task *task, const void *arg, size_t bytes);
  void (*wake)(tn_sim_device *device);
  void *(*real)(const void *address);
  /* Ends what the fault `stall` has begun; any thread. */
  void (*release)(tn_sim_device *device);
} tn_sim_native;
