/* backends/sim/native.c: tn_backend.native: the interface "sim.1". */
#include "backends/sim/native.h"

#include <string.h>

#include "backends/sim/sim.h"

void *tn_sim_native_handle(tn_env *env, void *device, void *stream, const char *name) {
  (void)env;
  if (strcmp(name, TN_SIM_NATIVE) != 0) return NULL;
  return stream != NULL ? &((tn_sim_stream *)stream)->native : &((tn_sim_device *)device)->native;
}
