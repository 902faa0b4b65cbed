/* core/train/loop/live_report.h: [run] report: the run rewrites its report.html while it goes on. */
#ifndef TN_CORE_TRAIN_LOOP_LIVE_REPORT_H
#define TN_CORE_TRAIN_LOOP_LIVE_REPORT_H

#include "tenon/plugin/observer.h"

typedef struct tn_live_report {
  const char *folder;     /* of the run; NULL: no report is written */
  double ended_s, took_s; /* the last page; 0: none yet */
} tn_live_report;

/* On the thread of the observers, after they have written what they know of the event: at the end of an
 * epoch, and every ten seconds in between. Writing takes at most a twentieth of the time, so that a page that
 * takes long is written less often. A failure is a warning, and no more pages are written. */
void tn_live_report_update(tn_live_report *report, const void *handle, const tn_event *event);
/* The last page, when the run has ended and its folder is no longer in use. */
void tn_live_report_finish(const void *handle, const char *folder);

#endif
