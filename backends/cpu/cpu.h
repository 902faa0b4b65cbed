/* backends/cpu/cpu.h: options and properties of the backend. */
#pragma once

#include <stdbool.h>

#include "tenon/plugin/backend.h"

extern const tn_backend tn_cpu_backend;

typedef struct tn_cpu_options {
  int64_t threads;   /* at least 1 in `open`: the host replaces 0 */
  tn_ints pin;       /* the processors of the threads, in order; empty: threads are not bound */
  const char *cache; /* folder for measured rates; "": none */
  int32_t bandwidth; /* TN_CPU_ESTIMATED or TN_CPU_MEASURED */
} tn_cpu_options;
enum { TN_CPU_ESTIMATED = 0, TN_CPU_MEASURED = 1 };

/* ---- properties.c ------------------------------------------------------------------------------ */

/* Fills the properties of the processors with so many threads in use; their details are written to `text`.
 * Rates are estimates that depend on the processors alone, not on their load. */
void tn_cpu_properties_fill(int32_t threads, char *text, size_t text_bytes, tn_device_properties *properties);

/* ---- bandwidth.c ------------------------------------------------------------------------------- */

/* Bytes of memory that so many threads read and write in a second: from a file in the cache folder, or
 * measured in about 50 ms and stored there. 0: the measurements differ by too much, as on a busy machine. */
double tn_cpu_bandwidth(tn_env *env, const char *cache, const char *name, int32_t threads);
