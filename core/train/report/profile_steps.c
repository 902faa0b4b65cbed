/* core/train/report/profile_steps.c: [run] profile and --trace: which steps of a training are profiled, and
 * where the profile goes. Every rank profiles the same steps, since none of them replays captures then; rank
 * 0 writes and reports. */
#include "core/base/file/file.h"
#include "core/train/loop/training.h"

#include <stdlib.h>
#include <string.h>

/* The steps of a run that is not a resumed one are known before training. */
static tn_status profile_check_steps(const tn_training *t) {
  tn_run *run = t->run;
  int64_t asked = run->settings.run.profile;
  if (asked <= t->steps || run->settings.run.fast_dev_run || run->resume != NULL) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL, "%s: [run] profile = %lld, but the run has %lld step%s",
                  tn_settings_where(&run->ini, "run", "profile"), (long long)asked, (long long)t->steps,
                  t->steps == 1 ? "" : "s");
}

tn_status tn_training_open_profile(tn_training *t) {
  tn_run *run = t->run;
  tn_profiling *p = &t->profiling;
  p->wanted = run->settings.run.profile;
  if (p->wanted == 0 && run->trace != NULL) p->wanted = TN_PROFILE_STEPS;
  p->over = p->wanted == 0;
  if (p->over) return TN_OK;
  TN_TRY(tn_ini_note(&run->env, &run->ini, profile_check_steps(t)));
  TN_TRY(tn_ini_tell(&run->env, &run->ini));
  const tn_profiled what = {.run = run,
                            .set = &t->set,
                            .executor = t->executor,
                            .loader = tn_feeder_profiled_loader(t->train),
                            .workers = (int32_t)run->settings.data[TN_SPLIT_TRAIN].section.workers};
  return tn_step_profile_create(&what, &p->taken);
}

/* Steps of warm-up come first where the run is long enough. */
void tn_training_place_profile(tn_training *t) {
  tn_profiling *p = &t->profiling;
  int64_t left = t->steps - t->progress.step;
  if (p->wanted > left) p->wanted = left;
  int64_t warmup = left - p->wanted < TN_PROFILE_WARMUP ? left - p->wanted : TN_PROFILE_WARMUP;
  p->first = t->progress.step + 1 + warmup;
  p->over = p->over || p->wanted <= 0;
}

bool tn_training_profile_is_due(const tn_training *t) {
  return !t->profiling.over && t->progress.step + 1 >= t->profiling.first &&
         t->progress.batch < t->steps_per_epoch;
}

bool tn_training_count_profiled(tn_training *t, int64_t samples) {
  tn_profiling *p = &t->profiling;
  p->done++;
  p->samples += samples;
  return p->done == p->wanted;
}

tn_status tn_training_pause_profile(tn_training *t) {
  return t->profiling.over ? TN_OK : tn_step_profile_pause(t->profiling.taken);
}

/* ---- the end ---- */

static const char *profile_path(tn_training *t, const char *name) {
  return t->folder != NULL ? tn_arena_printf(&t->set.arena, "%s/%s", t->folder, name) : NULL;
}

static tn_status profile_write_json(tn_training *t, const json_t *report) {
  tn_env *env = &t->run->env;
  const char *path = profile_path(t, "profile.json");
  if (path == NULL) return TN_OK;
  char *text = json_dumps(report, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
  tn_status status = text != NULL ? tn_file_write_atomic(env, path, text, strlen(text)) : TN_ENOMEM;
  free(text);
  if (status == TN_OK) t->profiling.report_path = path;
  return status;
}

static tn_status profile_write_trace(tn_training *t) {
  const char *path = t->run->trace != NULL ? t->run->trace : profile_path(t, "trace.json");
  if (path == NULL) return TN_OK;
  TN_TRY(tn_step_profile_write_trace(t->profiling.taken, path));
  t->profiling.trace_path = path;
  return TN_OK;
}

/* The training goes on without a file that cannot be written. */
static void profile_survive(tn_training *t, tn_status status) {
  if (status == TN_OK) return;
  tn_logf(&t->run->env, TN_LOG_WARN, "the profile is not complete: %s", tn_error_text(&t->run->env));
  tn_error_clear(&t->run->env); /* logged; the run goes on */
}

/* The observers read the table until they are closed. */
static tn_status profile_post(tn_training *t, const json_t *report) {
  tn_text table = tn_text_new(&t->run->env);
  tn_profile_table(report, &table);
  if (t->profiling.trace_path != NULL)
    tn_text_addf(&table, "trace: %s (ui.perfetto.dev, or chrome://tracing)\n", t->profiling.trace_path);
  tn_event event = tn_training_event(t, TN_EVENT_PROFILE);
  event.table = t->profiling.table = tn_text_take(&table);
  if (event.table == NULL) return TN_ENOMEM;
  event.text = t->profiling.report_path != NULL ? t->profiling.report_path : "";
  tn_observers_post(t->observers, &event);
  return TN_OK;
}

static tn_status profile_tell(tn_training *t) {
  tn_profiling *p = &t->profiling;
  json_t *report = NULL;
  const tn_profiled_steps steps = {p->first, p->done, p->samples, t->steps};
  TN_TRY(tn_step_profile_report(p->taken, &steps, &report));
  profile_survive(t, profile_write_json(t, report));
  profile_survive(t, profile_write_trace(t));
  tn_status status = profile_post(t, report);
  json_decref(report);
  return status;
}

tn_status tn_training_end_profile(tn_training *t) {
  tn_profiling *p = &t->profiling;
  if (p->over) return TN_OK;
  TN_TRY(tn_step_profile_pause(p->taken));
  p->over = true;
  if (p->done == 0 || t->run->rank > 0) return TN_OK;
  tn_flight_wait before = tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "a profile that it writes");
  tn_status status = profile_tell(t);
  tn_flight_end_wait(t->device->flight, &before);
  return status;
}

void tn_training_drop_profile(tn_training *t) {
  if (!t->profiling.over) tn_step_profile_pause(t->profiling.taken);
  t->profiling.over = true;
}

void tn_training_release_profile(tn_training *t) {
  tn_step_profile_destroy(t->profiling.taken);
  tn_release(&t->run->env, t->profiling.table);
}
