/* backends/sim/plugin.c: the descriptor: the backend `sim`. Its kernels are those of the cpu. */
#include "backends/sim/sim.h"

TN_PLUGIN(sim, "0.1.0", "MIT", &tn_sim_backend.item, &tn_sim_communicator.item)
