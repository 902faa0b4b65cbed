/* core/step/profile/profile_trace.c: the spans of a profile as a trace. */
#include "core/formats/trace.h"

#include <stdio.h>

#include "core/step/profile/taken_profile.h"

enum { FACTS = 4 };

typedef struct tn_profile_writer {
  const tn_step_profile *profile;
  const json_t *programs; /* of tn_profile_programs */
  tn_trace_writer *trace;
  double origin_s;
} tn_profile_writer;

/* ---- rows ---- */

static const char *profile_row_name(int32_t track, char text[32]) {
  static const char *const streams[] = {"compute", "copies to the device", "copies to the host",
                                        "collectives"};
  if (track == TN_TRACK_HOST) return "host";
  if (track == TN_TRACK_FALLBACK) return "fallback";
  if (track < TN_TRACK_FALLBACK) return streams[track - TN_TRACK_STREAM];
  snprintf(text, 32, "loader %d", (int)(track - TN_TRACK_WORKER + 1));
  return text;
}

static bool profile_has_row(const tn_span *spans, size_t n, int32_t track) {
  for (size_t i = 0; i < n; i++)
    if (spans[i].track == track) return true;
  return false;
}

static tn_status profile_write_rows(const tn_profile_writer *w, const tn_span *spans, size_t n) {
  int32_t last = TN_TRACK_WORKER + w->profile->what.workers;
  char text[32];
  for (int32_t track = 0; track < last; track++)
    if (profile_has_row(spans, n, track))
      TN_TRY(tn_trace_thread(w->trace, track, profile_row_name(track, text)));
  return TN_OK;
}

/* ---- spans ---- */

static const char *profile_text(const json_t *op, const char *key) {
  const char *text = json_string_value(json_object_get(op, key));
  return text != NULL ? text : "";
}

static void profile_describe_launch(const tn_profile_writer *w, const tn_span *span, tn_trace_event *event,
                                    tn_trace_fact facts[FACTS]) {
  const json_t *op = json_array_get(json_array_get(w->programs, (size_t)span->program), (size_t)span->step);
  event->name = profile_text(op, "name");
  event->category = "launch";
  facts[0] = (tn_trace_fact){"op", profile_text(op, "op"), 0};
  facts[1] = (tn_trace_fact){"kernel", profile_text(op, "kernel"), 0};
  facts[2] = (tn_trace_fact){"program", w->profile->what.set->list[span->program]->name, 0};
  facts[3] = (tn_trace_fact){"launch", NULL, span->step};
  event->n_facts = 4;
}

static void profile_describe_span(const tn_profile_writer *w, const tn_span *span, tn_trace_event *event,
                                  tn_trace_fact facts[FACTS]) {
  static const char *const names[TN_SPANS][2] = {
      [TN_SPAN_AWAIT] = {"wait for a collective", "wait"},
      [TN_SPAN_COPY_IN] = {"copy to the device", "copy"},
      [TN_SPAN_COPY_OUT] = {"copy to the host", "copy"},
      [TN_SPAN_STEP] = {"step", "step"},
      [TN_SPAN_RUN] = {"run", "host"},
      [TN_SPAN_WAIT_STEP] = {"wait for results", "wait"},
      [TN_SPAN_WAIT_BATCH] = {"wait for a batch", "wait"},
      [TN_SPAN_READ] = {"read", "loader"},
  };
  event->name = names[span->kind][0];
  event->category = names[span->kind][1];
  event->n_facts = 1;
  switch (span->kind) {
  case TN_SPAN_COPY_IN:
  case TN_SPAN_COPY_OUT: facts[0] = (tn_trace_fact){"bytes", NULL, (double)span->number}; break;
  case TN_SPAN_STEP: facts[0] = (tn_trace_fact){"step", NULL, (double)span->number}; break;
  case TN_SPAN_RUN:
    facts[0] = (tn_trace_fact){"program", w->profile->what.set->list[span->program]->name, 0};
    break;
  case TN_SPAN_READ:
    facts[0] = (tn_trace_fact){"batch", NULL, (double)span->number};
    facts[1] = (tn_trace_fact){"reading_ms", NULL, span->reading_s * 1e3};
    event->n_facts = 2;
    break;
  default: event->n_facts = 0;
  }
}

static tn_status profile_write_span(const tn_profile_writer *w, const tn_span *span) {
  tn_trace_fact facts[FACTS];
  tn_trace_event event = {.thread = span->track,
                          .start_s = span->start_s - w->origin_s,
                          .duration_s = span->end_s - span->start_s,
                          .facts = facts};
  (span->kind == TN_SPAN_LAUNCH ? profile_describe_launch : profile_describe_span)(w, span, &event, facts);
  return tn_trace_add(w->trace, &event);
}

static tn_status profile_write_spans(tn_profile_writer *w) {
  size_t n;
  int64_t lost;
  const tn_span *spans = tn_timeline_spans(w->profile->timeline, &n, &lost);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || spans[i].start_s < w->origin_s) w->origin_s = spans[i].start_s;
  TN_TRY(profile_write_rows(w, spans, n));
  for (size_t i = 0; i < n; i++) TN_TRY(profile_write_span(w, &spans[i]));
  return TN_OK;
}

tn_status tn_step_profile_write_trace(tn_step_profile *p, const char *path) {
  tn_profile_writer w = {.profile = p};
  json_t *programs = NULL;
  TN_TRY(tn_profile_programs(p, &programs));
  w.programs = programs;
  tn_status status = tn_trace_begin(&p->what.run->env, path, &w.trace);
  if (status == TN_OK) {
    status = profile_write_spans(&w);
    if (status == TN_OK)
      status = tn_trace_commit(w.trace);
    else
      tn_trace_abandon(w.trace);
  }
  json_decref(programs);
  return status;
}
