/* backends/sim/engine/signal.h: an event count, for threads that sleep until a condition changes. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_sim_signal {
  _Atomic(uint32_t) count;
  _Atomic(int32_t) sleepers;
} tn_sim_signal;

uint32_t tn_sim_signal_read(tn_sim_signal *signal);
void tn_sim_signal_raise(tn_sim_signal *signal);
/* Returns when the signal has been raised since `seen` was read, after `micros` (-1: no limit), or
 * spuriously. */
void tn_sim_signal_wait(tn_sim_signal *signal, uint32_t seen, int64_t micros);
