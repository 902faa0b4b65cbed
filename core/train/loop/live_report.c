#include "core/train/loop/live_report.h"

#include "core/base/file.h"
#include "core/base/system.h"
#include "core/train/folders/write_report.h"

enum { BETWEEN_STEPS_S = 10, SHARE = 20 };

static tn_status live_report_write(const void *handle, const char *folder) {
  char *path = tn_path_join(handle, folder, "report.html");
  tn_status status = path != NULL ? tn_report_write(handle, &folder, 1, path) : TN_ENOMEM;
  tn_release(handle, path);
  if (status != TN_OK) tn_logf(handle, TN_LOG_WARN, "the report is not written: %s", tn_error_text(handle));
  return status;
}

static bool live_report_is_due(const tn_live_report *report, const tn_event *event) {
  double waited = tn_clock_s() - report->ended_s;
  if (report->ended_s > 0 && waited < (SHARE - 1) * report->took_s) return false;
  return event->kind == TN_EVENT_RUN_START || event->kind == TN_EVENT_EPOCH_END ||
         (event->kind == TN_EVENT_STEP && waited >= BETWEEN_STEPS_S);
}

void tn_live_report_update(tn_live_report *report, const void *handle, const tn_event *event) {
  if (report->folder == NULL || !live_report_is_due(report, event)) return;
  double began = tn_clock_s();
  if (live_report_write(handle, report->folder) != TN_OK) report->folder = NULL;
  report->ended_s = tn_clock_s();
  report->took_s = report->ended_s - began;
}

void tn_live_report_finish(const void *handle, const char *folder) {
  tn_env env;
  tn_error_record record; /* the failure of the run stays recorded */
  tn_error_record_init(&env, &record, handle);
  (void)live_report_write(&env, folder);
}
