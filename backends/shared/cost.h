/* backends/shared/cost.h: estimated times of kernels whose time goes to memory. */
#ifndef TN_BACKENDS_SHARED_COST_H
#define TN_BACKENDS_SHARED_COST_H

#include "tenon/plugin/kernel.h"

/* The bytes of all operands and results of a match. */
static inline double tn_match_bytes(const tn_match *m) {
  double bytes = 0;
  for (int32_t i = 0; i < m->n_in; i++) bytes += m->in[i] == NULL ? 0 : (double)tn_type_bytes(m->in[i]);
  for (int32_t i = 0; i < m->n_out; i++) bytes += (double)tn_type_bytes(m->out[i]);
  return bytes;
}

/* Seconds to read or write so many bytes, at 10 GB/s. */
static inline double tn_seconds_of_bytes(double bytes) { return bytes / 1e10; }

/* Seconds of a kernel that reads and writes so many bytes: the call, and the bytes. */
static inline double tn_cost_of_bytes(double bytes) { return 1e-7 + tn_seconds_of_bytes(bytes); }

#endif
