/* core/train/observers/queued_event.h: an event in the queue of the observers, with copies of what it points
 * to. */
#pragma once

#include "core/base/env.h"
#include "tenon/plugin/observer.h"

enum { TN_EVENT_METRICS = 32, TN_EVENT_TEXT = 512 };

typedef struct tn_queued_event {
  tn_event event;
  tn_metric train[TN_EVENT_METRICS], valid[TN_EVENT_METRICS];
  char text[TN_EVENT_TEXT];
  void *attached; /* the arrays of a WATCH or SAMPLES, of any length */
} tn_queued_event;

/* Copies an event; names and limits of buckets, which stay until the run ends, are not copied. Without memory
 * for them the event has no watched numbers and no media. */
void tn_queued_event_set(const void *handle, tn_queued_event *to, const tn_event *event);
/* Releases the copies. */
void tn_queued_event_clear(const void *handle, tn_queued_event *event);
