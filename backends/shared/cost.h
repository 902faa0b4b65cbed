/* backends/shared/cost.h: estimates of what a kernel costs on a processor whose time goes to memory. */
#ifndef TN_BACKENDS_SHARED_COST_H
#define TN_BACKENDS_SHARED_COST_H

#include "tenon/plugin/kernel.h"

/* Of all operands and results of a match. */
static inline double tn_match_bytes(const tn_match *m) {
  double bytes = 0;
  for (int32_t i = 0; i < m->n_in; i++) bytes += m->in[i] == NULL ? 0 : (double)tn_type_bytes(m->in[i]);
  for (int32_t i = 0; i < m->n_out; i++) bytes += (double)tn_type_bytes(m->out[i]);
  return bytes;
}

/* Seconds for a kernel that moves so many bytes: the call, then 10 GB/s on one thread. */
static inline double tn_cost_of_bytes(double bytes) { return 1e-7 + bytes / 1e10; }

#endif
