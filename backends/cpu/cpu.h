/* backends/cpu/cpu.h: what the files of the backend share: its options, the device, and the team of
 * threads behind tn_parallel. */
#ifndef TN_BACKENDS_CPU_CPU_H
#define TN_BACKENDS_CPU_CPU_H

#include "tenon/plugin/backend.h"

extern const tn_backend tn_cpu_backend;

typedef struct tn_cpu_options {
  int64_t threads; /* 0: as many as there are processors */
  tn_ints pin;     /* the processors of the threads, in their order; none: they are not bound */
} tn_cpu_options;

/* ---- team.c: persistent threads for parallel loops --------------------------------------------- */

typedef struct tn_cpu_team tn_cpu_team;

/* A team of `threads` >= 1, the caller included. Idle threads spin for a moment, then sleep. Thread i is
 * bound to the i-th processor of `pin`, as far as it goes; the first is the caller's, who binds itself. The
 * handle must outlive the team. */
tn_status tn_cpu_team_create(tn_env *env, int32_t threads, const tn_ints *pin, tn_cpu_team **team);
void tn_cpu_team_destroy(tn_cpu_team *team);

/* Runs body(arg, 0 .. chunks-1) and returns when all are done. Who runs which chunk is left to
 * chance. A call made while the team is busy, from inside a body or from another thread, runs its
 * chunks itself. */
void tn_cpu_team_run(tn_cpu_team *team, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg);

/* ---- memory.c ---------------------------------------------------------------------------------- */

tn_status tn_cpu_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address);
void tn_cpu_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes);

/* ---- stream.c: everything runs inside the call, so streams and events have nothing to keep ------ */

tn_status tn_cpu_stream_new(tn_env *env, void *device, int32_t role, void **stream);
void tn_cpu_stream_delete(tn_env *env, void *stream);
tn_status tn_cpu_stream_wait(tn_env *env, void *stream);
tn_status tn_cpu_event_new(tn_env *env, void *device, void **event);
void tn_cpu_event_delete(tn_env *env, void *event);
tn_status tn_cpu_event_record(tn_env *env, void *event, void *stream);
tn_status tn_cpu_event_await(tn_env *env, void *event, void *stream);
tn_status tn_cpu_event_wait(tn_env *env, void *event);
tn_status tn_cpu_stream_copy(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                             uint64_t bytes);
tn_status tn_cpu_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes);

#endif
