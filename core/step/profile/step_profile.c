/* core/step/profile/step_profile.c: begins, pauses and ends a profile. */
#include <errno.h>

#include "core/base/file/file.h"
#include "core/base/system/system.h"
#include "core/compile/output/report.h"
#include "core/step/profile/taken_profile.h"

tn_status tn_step_profile_create(const tn_profiled *what, tn_step_profile **out) {
  tn_step_profile *p = *out = tn_alloc(&what->run->env, sizeof *p);
  if (p == NULL) return TN_ENOMEM;
  p->what = *what;
  p->timeline = tn_timeline_new(&what->run->env);
  if (p->timeline != NULL) return TN_OK;
  tn_step_profile_destroy(p);
  *out = NULL;
  return TN_ENOMEM;
}

void tn_step_profile_set_loader(tn_step_profile *p, tn_loader *loader) {
  if (p != NULL) p->what.loader = loader;
}

void tn_step_profile_destroy(tn_step_profile *p) {
  if (p == NULL) return;
  tn_timeline_free(p->timeline);
  tn_release(&p->what.run->env, p);
}

tn_status tn_step_profile_resume(tn_step_profile *p) {
  if (p->running) return TN_OK;
  if (p->what.executor != NULL) TN_TRY(tn_executor_profile(p->what.executor, p->timeline));
  p->running = true;
  tn_timeline_open(p->timeline, true);
  if (p->what.loader != NULL) tn_loader_profile(p->what.loader, p->timeline);
  p->resumed_s = tn_clock_s();
  return TN_OK;
}

bool tn_step_profile_runs(const tn_step_profile *p) { return p->running; }

/* Reading the times of the device is no part of the steps. */
tn_status tn_step_profile_pause(tn_step_profile *p) {
  if (!p->running) return TN_OK;
  p->running = false;
  p->wall_s += tn_clock_s() - p->resumed_s;
  tn_status status = TN_OK;
  if (p->what.executor != NULL) {
    status = tn_executor_profile_read(p->what.executor);
    tn_executor_profile(p->what.executor, NULL);
  }
  if (p->what.loader != NULL) tn_loader_profile(p->what.loader, NULL);
  tn_timeline_open(p->timeline, false);
  return status;
}

void tn_step_profile_host(tn_step_profile *p, int32_t kind, double start_s, int64_t number) {
  if (p == NULL || !p->running) return;
  tn_timeline_add(
      p->timeline,
      &(tn_span){
          .kind = kind, .track = TN_TRACK_HOST, .number = number, .start_s = start_s, .end_s = tn_clock_s()});
}

tn_status tn_profile_programs(const tn_step_profile *p, json_t **programs) {
  const tn_program_set *set = p->what.set;
  json_t *list = *programs = json_array();
  for (int32_t i = 0; list != NULL && p->what.executor != NULL && i < set->n; i++) {
    json_t *report = NULL;
    tn_status status = tn_program_report(set->list[i], &report);
    if (status == TN_OK && json_array_append(list, json_object_get(report, "ops")) != 0) status = TN_ENOMEM;
    json_decref(report);
    if (status == TN_OK) continue;
    json_decref(list);
    *programs = NULL;
    return status;
  }
  return list != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_profile_check_path(const void *handle, const char *path) {
  char *folder = tn_path_folder(handle, path);
  if (folder == NULL) return TN_ENOMEM;
  bool there = tn_file_exists(folder) || errno != ENOENT;
  tn_status status = there
                         ? tn_file_check_new(handle, path)
                         : tn_failf(handle, TN_EIO, "%s: there is no folder %s; make it first", path, folder);
  tn_release(handle, folder);
  return tn_wrap(handle, status, "the trace");
}
