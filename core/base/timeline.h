/* core/base/timeline.h: the work of the threads and streams of a run as spans of time, for a profile. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

enum {
  TN_SPAN_LAUNCH = 0, /* a launch of a program */
  TN_SPAN_AWAIT,      /* the compute stream awaits a collective */
  TN_SPAN_COPY_IN,    /* a copy to the device, or to the host */
  TN_SPAN_COPY_OUT,
  TN_SPAN_STEP,       /* the host works on a step */
  TN_SPAN_RUN,        /* the host enqueues a program, or computes it */
  TN_SPAN_WAIT_STEP,  /* the host waits for the results of a step */
  TN_SPAN_WAIT_BATCH, /* the host waits for a batch */
  TN_SPAN_READ,       /* the loader reads and transforms a part of a batch */
  TN_SPANS
};

/* Rows of the timeline: the thread that launches, the streams of the device by role, its fallback, and the
 * loader's threads. */
enum { TN_TRACK_HOST = 0, TN_TRACK_STREAM = 1, TN_TRACK_FALLBACK = 15, TN_TRACK_WORKER = 16 };

typedef struct tn_span {
  int32_t kind, track;
  int32_t program, step; /* LAUNCH, RUN: of the executor's programs; LAUNCH: number of the launch */
  int64_t number;        /* COPY_...: bytes; READ: number of the batch in its epoch; STEP: of the step */
  double start_s, end_s; /* of tn_clock_s */
  double reading_s;      /* READ: of this time, reading; the rest is transforms */
} tn_span;

typedef struct tn_timeline tn_timeline;

/* Empty and closed. Memory and messages are those of `handle`, which outlives it. NULL: out of memory. */
tn_timeline *tn_timeline_new(const void *handle);
void tn_timeline_free(tn_timeline *timeline);

/* An open timeline takes spans; a closed one drops them. */
void tn_timeline_open(tn_timeline *timeline, bool open);
/* Any thread. Spans for which there is no memory, or more than 2^20 of them, are lost. */
void tn_timeline_add(tn_timeline *timeline, const tn_span *span);
/* The spans of a closed timeline, in the order in which they were added; *lost counts those that were not.
 * Valid until it is opened again. */
const tn_span *tn_timeline_spans(tn_timeline *timeline, size_t *n, int64_t *lost);
/* Removes all spans. */
void tn_timeline_clear(tn_timeline *timeline);
