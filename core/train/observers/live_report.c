#include "core/train/observers/live_report.h"

#include "core/base/file/file.h"
#include "core/base/system/system.h"
#include "core/records/folders/write_report.h"

enum { BETWEEN_STEPS_S = 10, SHARE = 20 };

static tn_status live_report_write(const void *handle, const char *folder) {
  char *path = tn_path_join(handle, folder, "report.html");
  tn_status status = path != NULL ? tn_report_write(handle, &folder, 1, path) : TN_ENOMEM;
  tn_release(handle, path);
  if (status != TN_OK) tn_logf(handle, TN_LOG_WARN, "the report is not written: %s", tn_error_text(handle));
  return status;
}

void tn_live_report_start(tn_live_report *report, const tn_env *like, const char *folder) {
  report->folder = folder;
  tn_error_record_init(&report->env, &report->record, like);
}

static void *live_report_run_thread(void *context) {
  tn_live_report *report = context;
  double began = tn_clock_s();
  TN_THREAD_STATE;
  report->failed = live_report_write(&report->env, report->folder) != TN_OK;
  report->ended_s = tn_clock_s();
  report->took_s = report->ended_s - began;
  atomic_store(&report->writing, false);
  return NULL;
}

static bool live_report_is_due(const tn_live_report *report, const tn_event *event) {
  double waited = tn_clock_s() - report->ended_s;
  if (report->failed || waited < (SHARE - 1) * report->took_s) return false;
  return event->kind == TN_EVENT_RUN_START || event->kind == TN_EVENT_EPOCH_END ||
         (event->kind == TN_EVENT_STEP && waited >= BETWEEN_STEPS_S);
}

void tn_live_report_update(tn_live_report *report, const tn_event *event) {
  if (report->folder == NULL || atomic_load(&report->writing) || !live_report_is_due(report, event)) return;
  tn_live_report_stop(report);
  atomic_store(&report->writing, true);
  report->began = tn_thread_start(&report->thread, live_report_run_thread, report) == 0;
  if (!report->began) atomic_store(&report->writing, false); /* the next event tries again */
}

void tn_live_report_stop(tn_live_report *report) {
  if (report->began) pthread_join(report->thread, NULL);
  report->began = false;
}

void tn_live_report_finish(const void *handle, const char *folder) {
  tn_env env;
  tn_error_record record; /* the failure of the run stays recorded */
  tn_error_record_init(&env, &record, handle);
  (void)live_report_write(&env, folder);
}
