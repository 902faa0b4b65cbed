/* backends/sim/native.c: the interface "sim.1". */
#include "backends/sim/native.h"

#include <string.h>

#include "backends/sim/sim.h"

static void native_release(tn_sim_device *device) {
  atomic_store(&device->released, true);
  tn_sim_wake(device);
}

void tn_sim_native_init(tn_sim_native *native, tn_sim_device *device, void *stream) {
  *native = (tn_sim_native){.struct_size = sizeof *native,
                            .device = device,
                            .stream = stream,
                            .push_task = tn_sim_push_task,
                            .wake = tn_sim_wake,
                            .real = tn_sim_real,
                            .release = native_release};
}

void *tn_sim_native_handle(tn_env *env, void *device, void *stream, const char *name) {
  (void)env;
  if (strcmp(name, TN_SIM_NATIVE) != 0) return NULL;
  return stream != NULL ? &((tn_sim_stream *)stream)->native : &((tn_sim_device *)device)->native;
}
