/* backends/sim/race/clocks.h: who knows of whom. */
#ifndef TN_BACKENDS_SIM_RACE_CLOCKS_H
#define TN_BACKENDS_SIM_RACE_CLOCKS_H

#include <stdint.h>

/* Whose time is counted: the host, each stream, and each stream's part of captured work. */
enum { TN_SIM_STREAMS = 8, TN_SIM_HOST = 0, TN_SIM_CLOCKS = 1 + 2 * TN_SIM_STREAMS };

/* A vector clock (Mattern 1989): up to which piece of work of each the owner knows that it is done. */
typedef struct tn_sim_clock {
  uint64_t at[TN_SIM_CLOCKS];
} tn_sim_clock;

void tn_sim_clock_join(tn_sim_clock *clock, const tn_sim_clock *other);

#endif
