/* core/train/observers/live_report.h: [run] report: the run rewrites its report.html while it goes on. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/env.h"
#include "tenon/plugin/observer.h"

/* A page is written by a thread of its own, so that the observers go on meanwhile: the time that it takes
 * grows with the metrics. */
typedef struct tn_live_report {
  const char *folder; /* of the run; NULL: no report is written */
  tn_env env;         /* of the thread */
  tn_error_record record;
  pthread_t thread;
  bool began; /* the thread was started, and is to be joined */
  atomic_bool writing;
  double ended_s, took_s; /* of the last page, or 0 before it */
  bool failed;
} tn_live_report;

void tn_live_report_start(tn_live_report *report, const tn_env *like, const char *folder);
/* On the thread of the observers, after they have written what they know of the event: starts a page at the
 * start of the run, at the end of an epoch, and every ten seconds in between. Writing takes at most a
 * twentieth of the time, so that a page that takes long is written less often. A failure is a warning, and no
 * more pages are written. */
void tn_live_report_update(tn_live_report *report, const tn_event *event);
/* Waits for the page that is being written. */
void tn_live_report_stop(tn_live_report *report);
/* The last page, when the run has ended and its folder is no longer in use. */
void tn_live_report_finish(const void *handle, const char *folder);
