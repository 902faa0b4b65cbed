/* backends/sim/race/clocks.c: vector clocks. */
#include "backends/sim/race/clocks.h"

void tn_sim_clock_join(tn_sim_clock *clock, const tn_sim_clock *other) {
  for (int32_t i = 0; i < TN_SIM_CLOCKS; i++)
    if (other->at[i] > clock->at[i]) clock->at[i] = other->at[i];
}
