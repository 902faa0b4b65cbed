/* core/formats/trace.c: the trace writer. Jansson prints each event: it escapes names, and unlike printf
 * it never writes a decimal comma. */
#include "core/formats/trace.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"

/* The buffer is written when it reaches this size. */
enum { BUFFER_BYTES = 1 << 16 };

struct tn_trace_writer {
  const void *handle;
  tn_new_file file;
  tn_text buffer;
  bool any; /* an event has been written */
};

static tn_status trace_flush(tn_trace_writer *trace) {
  if (trace->buffer.failed) return tn_failf(trace->handle, TN_ENOMEM, "%s: out of memory", trace->file.path);
  tn_status status = tn_file_append(trace->handle, &trace->file, trace->buffer.v, trace->buffer.n);
  trace->buffer.n = 0;
  return status;
}

/* Takes ownership of `event`; NULL means that Jansson failed to make it. */
static tn_status trace_add_event(tn_trace_writer *trace, json_t *event, const char *name) {
  char *text = event != NULL ? json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(event);
  if (text == NULL)
    return tn_failf(trace->handle, TN_EINVAL, "%s: \"%.100s\" is not UTF-8, or memory ran out",
                    trace->file.path, name);
  tn_text_addf(&trace->buffer, "%s%s", trace->any ? ",\n" : "", text);
  free(text);
  trace->any = true;
  return trace->buffer.n >= BUFFER_BYTES || trace->buffer.failed ? trace_flush(trace) : TN_OK;
}

tn_status tn_trace_begin(const void *handle, const char *path, tn_trace_writer **trace) {
  *trace = NULL;
  tn_trace_writer *t = tn_alloc(handle, sizeof(*t));
  if (t == NULL) return TN_ENOMEM;
  t->handle = handle;
  t->buffer = tn_text_new(handle);
  tn_status status = tn_file_begin(handle, path, &t->file);
  tn_text_add(&t->buffer, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  if (status == TN_OK)
    *trace = t;
  else
    tn_trace_abandon(t);
  return status;
}

tn_status tn_trace_thread(tn_trace_writer *trace, int32_t thread, const char *name) {
  TN_TRY(trace_add_event(trace,
                         json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid",
                                   1, "tid", thread, "args", "name", name),
                         name));
  return trace_add_event(trace,
                         json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "name", "thread_sort_index", "ph", "M",
                                   "pid", 1, "tid", thread, "args", "sort_index", thread),
                         name);
}

/* NULL: out of memory, or a text is not UTF-8. */
static json_t *trace_facts(const tn_trace_event *event) {
  json_t *facts = json_object();
  for (int32_t i = 0; facts != NULL && i < event->n_facts; i++) {
    const tn_trace_fact *fact = &event->facts[i];
    json_t *value = fact->text != NULL ? json_string(fact->text) : json_real(fact->number);
    if (json_object_set_new(facts, fact->name, value) == 0) continue;
    json_decref(facts);
    return NULL;
  }
  return facts;
}

/* Times in the file are microseconds. */
tn_status tn_trace_add(tn_trace_writer *trace, const tn_trace_event *event) {
  if (!isfinite(event->start_s) || !isfinite(event->duration_s) || event->duration_s < 0)
    return tn_failf(trace->handle, TN_EINVAL,
                    "%s: \"%.100s\" the start or the duration is not finite, or the duration is negative",
                    trace->file.path, event->name);
  json_t *json =
      json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i}", "name", event->name, "cat", event->category, "ph", "X",
                "ts", event->start_s * 1e6, "dur", event->duration_s * 1e6, "pid", 1, "tid", event->thread);
  if (json != NULL && event->n_facts > 0 && json_object_set_new(json, "args", trace_facts(event)) != 0) {
    json_decref(json);
    json = NULL;
  }
  return trace_add_event(trace, json, event->name);
}

tn_status tn_trace_commit(tn_trace_writer *trace) {
  tn_text_add(&trace->buffer, "\n]}\n");
  tn_status status = trace_flush(trace);
  if (status == TN_OK) status = tn_file_commit(trace->handle, &trace->file);
  tn_trace_abandon(trace);
  return status;
}

void tn_trace_abandon(tn_trace_writer *trace) {
  if (trace == NULL) return;
  tn_file_abandon(trace->handle, &trace->file);
  tn_text_free(&trace->buffer);
  tn_release(trace->handle, trace);
}
