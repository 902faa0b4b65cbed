/* backends/cpu/cpu.h: options of the backend, and the team of threads behind tn_parallel. */
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

/* ---- team.c: persistent threads for parallel loops --------------------------------------------- */

typedef struct tn_cpu_team tn_cpu_team;

/* A team of `threads` >= 1, the calling thread included. Idle threads spin for a moment, then sleep. Thread i
 * is bound to processor pin[i], if there is one; the calling thread is thread 0 and is not bound here. The
 * handle must outlive the team. */
tn_status tn_cpu_team_create(tn_env *env, int32_t threads, const tn_ints *pin, tn_cpu_team **team);
void tn_cpu_team_destroy(tn_cpu_team *team);

/* Calls body(arg, chunk) for chunk 0 .. chunks-1 and returns when all are done. The assignment of chunks to
 * threads is arbitrary. A call while the team is busy, from inside a body or from another thread, runs all
 * chunks on its own thread. */
void tn_cpu_team_run(tn_cpu_team *team, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg);

/* The number of spins of later waits, after some of `spins`: the least where a thread of the team has been
 * preempted during them, else a few more, up to a limit. */
int32_t tn_cpu_team_next_spins(int32_t spins, bool preempted);

/* ---- properties.c ------------------------------------------------------------------------------ */

/* Fills the properties of the processors with so many threads in use; their details are written to `text`.
 * Rates are estimates that depend on the processors alone, not on their load. */
void tn_cpu_properties_fill(int32_t threads, char *text, size_t text_bytes, tn_device_properties *properties);

/* ---- bandwidth.c ------------------------------------------------------------------------------- */

/* Bytes of memory that so many threads read and write in a second: from a file in the cache folder, or
 * measured in about 50 ms and stored there. 0: the measurements differ by too much, as on a busy machine. */
double tn_cpu_bandwidth(tn_env *env, const char *cache, const char *name, int32_t threads);
