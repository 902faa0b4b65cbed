/* core/formats/trace.h: timelines in the trace event format of chrome://tracing and Perfetto ("Trace Event
 * Format", complete events). */
#pragma once

#include "core/base/env.h"

typedef struct tn_trace_writer tn_trace_writer;

/* A fact about an event, which viewers show on a click. */
typedef struct tn_trace_fact {
  const char *name, *text; /* UTF-8; text NULL: a number */
  double number;
} tn_trace_fact;

/* One event with a duration. Times are seconds from any fixed point, the same for all events. */
typedef struct tn_trace_event {
  const char *name, *category; /* UTF-8 */
  int32_t thread;              /* the row of the timeline */
  double start_s, duration_s;
  const tn_trace_fact *facts;
  int32_t n_facts;
} tn_trace_event;

/* The file is created under a temporary name and appears on commit. */
tn_status tn_trace_begin(const void *handle, const char *path, tn_trace_writer **trace);
/* Names a row: "compute", "copy in". Rows are shown in the order of their numbers. */
tn_status tn_trace_thread(tn_trace_writer *trace, int32_t thread, const char *name);
tn_status tn_trace_add(tn_trace_writer *trace, const tn_trace_event *event);
/* Both free the trace, tn_trace_commit also on failure. tn_trace_abandon accepts NULL. */
tn_status tn_trace_commit(tn_trace_writer *trace);
void tn_trace_abandon(tn_trace_writer *trace);
