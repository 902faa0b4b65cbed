/* backends/sim/race/clocks.h: vector clocks. */
#pragma once

#include <stdint.h>

/* Entries of a clock: the host, each stream, and each stream's lane of a capture. */
enum { TN_SIM_STREAMS = 32, TN_SIM_HOST = 0, TN_SIM_CLOCKS = 1 + 2 * TN_SIM_STREAMS };

/* A vector clock (Mattern, "Virtual time and global states of distributed systems", 1989): for each entry,
 * the number of pieces of work that are ordered before the owner's next one. */
typedef struct tn_sim_clock {
  uint64_t at[TN_SIM_CLOCKS];
} tn_sim_clock;

void tn_sim_clock_join(tn_sim_clock *clock, const tn_sim_clock *other);
