/* backends/shared/cost.h: estimated times of kernels, from the rates of their device. */
#pragma once

#include "tenon/plugin/kernel.h"

/* The bytes of all operands and results of a match. */
static inline double tn_match_bytes(const tn_match *m) {
  double bytes = 0;
  for (int32_t i = 0; i < m->n_in; i++) bytes += m->in[i] == NULL ? 0 : (double)tn_type_bytes(m->in[i]);
  for (int32_t i = 0; i < m->n_out; i++) bytes += (double)tn_type_bytes(m->out[i]);
  return bytes;
}

/* Seconds to read or write so many bytes. */
static inline double tn_seconds_of_bytes(const tn_device_properties *d, double bytes) {
  return bytes / d->bytes_per_s;
}

/* Seconds of a launch that reads and writes so many bytes. */
static inline double tn_cost_of_bytes(const tn_device_properties *d, double bytes) {
  return d->launch_s + tn_seconds_of_bytes(d, bytes);
}

/* The speed of a thread of the device, relative to one of 1e11 f32 flop/s: that of a core with 256-bit
 * vectors at 3 GHz, for which kernels state their rates. */
static inline double tn_thread_speed(const tn_device_properties *d) {
  return d->vector_flops_per_s / (d->threads > 0 ? d->threads : 1) / 1e11;
}
