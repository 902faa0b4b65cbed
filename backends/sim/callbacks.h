/* backends/sim/callbacks.h: the functions of tn_backend that work on memory, streams, events and captures. */
#pragma once

#include "tenon/plugin/backend.h"

/* ---- memory.c ---- */

tn_status tn_sim_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address);
void tn_sim_memory_delete(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes);
tn_status tn_sim_memory_info(tn_env *env, void *device, int64_t *free_bytes, int64_t *all_bytes);

/* ---- stream.c ---- */

tn_status tn_sim_stream_new(tn_env *env, void *device, int32_t role, void **stream);
void tn_sim_stream_delete(tn_env *env, void *stream);
tn_status tn_sim_stream_wait(tn_env *env, void *stream);
tn_status tn_sim_enqueue(tn_env *env, void *stream, tn_status (*launch)(tn_launch *l), tn_launch *l);
/* tn_backend.native: the handle in the device or in the stream. */
void *tn_sim_native_handle(tn_env *env, void *device, void *stream, const char *name);

/* ---- copy.c ---- */

tn_status tn_sim_copy(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                      uint64_t bytes);
tn_status tn_sim_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes);

/* ---- event.c ---- */

tn_status tn_sim_event_new(tn_env *env, void *device, void **event);
void tn_sim_event_delete(tn_env *env, void *event);
tn_status tn_sim_event_record(tn_env *env, void *event, void *stream);
tn_status tn_sim_event_await(tn_env *env, void *event, void *stream);
tn_status tn_sim_event_wait(tn_env *env, void *event);
tn_status tn_sim_event_done(tn_env *env, void *event, int32_t *done);
tn_status tn_sim_event_seconds(tn_env *env, void *from, void *to, double *seconds);

/* ---- capture.c ---- */

/* tn_backend.capture: the two below around the work. */
tn_status tn_sim_capture_work(tn_env *env, void *device, void *stream, tn_status (*work)(void *arg),
                              void *arg, void **capture);
tn_status tn_sim_capture_begin(tn_env *env, void *device, void *stream);
tn_status tn_sim_capture_end(tn_env *env, void *device, void *stream, void **capture);
tn_status tn_sim_capture_launch(tn_env *env, void *capture, void *stream);
void tn_sim_capture_delete(tn_env *env, void *capture);
