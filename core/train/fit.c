/* core/train/fit.c: tn_run_train: everything that a training run needs is made, the loop runs, and
 * what came of it becomes the result. */
#include "core/train/fit.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/thread.h"
#include "core/train/result.h"

const char tn_why_finished[] = "finished", tn_why_stopped[] = "stopped", tn_why_out_of_time[] = "max_time",
           tn_why_nonfinite[] = "non-finite";

/* ---- set-up ---- */

static int64_t planned_steps(const tn_fit *t) {
  const tn_run_section *run = &t->run->settings.run;
  int64_t steps = t->steps_per_epoch > 0 && run->epochs > INT64_MAX / t->steps_per_epoch
                      ? INT64_MAX
                      : run->epochs * t->steps_per_epoch;
  if (run->max_steps > 0 && run->max_steps < steps) steps = run->max_steps;
  return run->fast_dev_run && steps > 1 ? 1 : steps;
}

static tn_status build_programs(tn_fit *t) {
  const tn_settings *s = &t->run->settings;
  tn_program_request request = {{0}};
  if (!s->data[TN_SPLIT_TRAIN].given)
    return tn_failf(&t->run->env, TN_EINVAL,
                    "%s: no [data] source, expected one, for example source = digits", t->run->ini.path);
  request.batch[TN_PROGRAM_STEP] = s->data[TN_SPLIT_TRAIN].section.batch;
  if (s->data[TN_SPLIT_VALID].given) request.batch[TN_PROGRAM_EVAL] = s->data[TN_SPLIT_VALID].section.batch;
  TN_TRY(tn_programs_build(t->run, &t->device->target, &request, &t->set));
  t->slots = tn_run_slots(t->run);
  /* a device with memory of its own computes while the host goes on; elsewhere there is nothing to gain */
  t->most_ahead = t->device->target.properties.host_addressable || t->slots < 3 ? 0 : TN_MOST_AHEAD;
  return tn_executor_create(&t->run->env, t->device, t->set.map, t->set.list, t->set.n, t->slots,
                            &t->executor);
}

static tn_status make_feeders(tn_fit *t) {
  tn_run *run = t->run;
  tn_status status = tn_feeder_create(run, TN_SPLIT_TRAIN, t->executor, t->set.index[TN_PROGRAM_STEP],
                                      t->set.programs[TN_PROGRAM_STEP], t->slots, &t->train);
  TN_TRY(tn_feeder_required(run, status));
  t->steps_per_epoch = tn_loader_batches(tn_feeder_loader(t->train));
  t->steps = planned_steps(t);
  if (!t->set.programs[TN_PROGRAM_EVAL]) return TN_OK;
  status = tn_feeder_create(run, TN_SPLIT_VALID, t->executor, t->set.index[TN_PROGRAM_EVAL],
                            t->set.programs[TN_PROGRAM_EVAL], t->slots, &t->valid);
  /* a source without validation data is fine unless [data.valid] asked for it */
  if (status == TN_EUNAVAILABLE && !tn_ini_section(&run->ini, "data.valid")) {
    tn_logf(&run->env, TN_LOG_INFO, "no validation: %s", tn_error_text(&run->env));
    return TN_OK;
  }
  return tn_feeder_required(run, status);
}

/* What the steps read and write in each slot, found before the first of them. */
static tn_status bind_slots(tn_fit *t) {
  tn_arena *arena = &t->set.arena;
  int32_t step = t->set.index[TN_PROGRAM_STEP], eval = t->set.index[TN_PROGRAM_EVAL];
  TN_TRY(tn_controls_bind(arena, t->executor, step, t->slots, &t->set.plan, &t->step_controls));
  TN_TRY(tn_readings_bind(arena, t->executor, step, t->slots, &t->set, &t->step_readings));
  TN_TRY(tn_tally_init(arena, &t->set, &t->epoch_tally));
  TN_TRY(tn_tally_init(arena, &t->set, &t->step_tally));
  TN_TRY(tn_tally_init(arena, &t->set, &t->valid_tally));
  if (!t->valid) return TN_OK;
  TN_TRY(tn_controls_bind(arena, t->executor, eval, t->slots, &t->set.plan, &t->eval_controls));
  return tn_readings_bind(arena, t->executor, eval, t->slots, &t->set, &t->eval_readings);
}

/* plan.json: what `tenon plan` would say, for the record. */
static tn_status write_plan(tn_fit *t) {
  json_t *plan = NULL;
  char *text = NULL;
  if (!t->folder) return TN_OK;
  TN_TRY(tn_plan_report(t->run, t->device, &t->set, t->slots, &plan));
  TN_TRY(tn_json_take(t->run, plan, &text));
  char *path = tn_path_join(&t->run->env, t->folder, "plan.json");
  tn_status status = path ? tn_file_write_atomic(&t->run->env, path, text, strlen(text)) : TN_ENOMEM;
  tn_release(&t->run->env, path);
  tn_release(&t->run->env, text);
  return status;
}

static tn_status resume(tn_fit *t) {
  t->saved = true;
  TN_TRY(tn_checkpoint_resume(t->run, t->executor, &t->set, t->folder, &t->progress));
  tn_tally_restore(&t->epoch_tally, &t->progress.tally);
  if (!t->run->settings.run.fast_dev_run) return TN_OK;
  tn_release(&t->run->env, t->folder); /* which writes nothing */
  t->folder = NULL;
  return TN_OK;
}

static tn_status start_state(tn_fit *t) {
  tn_run *run = t->run;
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(t->executor, 0));
  if (run->resume) TN_TRY(tn_run_folder_resume(run, &t->folder));
  if (t->folder) return resume(t);
  TN_TRY(tn_weights_load_configured(run, t->executor, t->set.map));
  TN_TRY(tn_run_folder_make(run, &t->folder));
  return write_plan(t);
}

static tn_status start_watch(tn_fit *t) {
  tn_run *run = t->run;
  tn_run_info info = {.struct_size = sizeof info,
                      .name = run->settings.run.name,
                      .folder = t->folder ? t->folder : "",
                      .epochs = run->settings.run.epochs,
                      .steps = t->steps,
                      .steps_per_epoch = t->steps_per_epoch,
                      .batch = run->settings.data[TN_SPLIT_TRAIN].section.batch,
                      .terminal = run->terminal_columns > 0,
                      .terminal_columns = run->terminal_columns,
                      .first_step = t->progress.step,
                      .epoch_ended = t->progress.ended};
  return tn_watch_start(run, &info, &t->watch);
}

static tn_status set_up(tn_fit *t) {
  TN_TRY(tn_run_device(t->run, &t->device));
  TN_TRY(build_programs(t));
  TN_TRY(make_feeders(t));
  TN_TRY(bind_slots(t));
  TN_TRY(start_state(t));
  return start_watch(t);
}

static void tear_down(tn_fit *t) {
  tn_watch_stop(t->watch);
  tn_feeder_destroy(t->train);
  tn_feeder_destroy(t->valid);
  tn_executor_destroy(t->executor);
  tn_programs_free(t->run, &t->set);
  tn_device_destroy(t->device);
  tn_release(&t->run->env, t->folder);
}

/* ---- the result ---- */

static json_t *metrics_json(tn_tally *tally) {
  return tn_metrics_json(tn_tally_means(tally), tally->steps > 0 ? tally->n + 1 : 0);
}

static json_t *result_of(tn_fit *t) {
  double seconds = tn_clock_s() - t->started_s;
  bool direct = t->device->target.properties.host_addressable != 0;
  int64_t planned = tn_executor_planned_bytes(t->set.map, t->set.list, t->set.n, t->slots, direct),
          measured = t->device->peak_bytes;
  return json_pack("{s:s, s:I, s:I, s:f, s:f, s:s, s:o, s:o, s:f, s:f, s:I, s:I, s:f}", "status", t->why,
                   "epochs", (json_int_t)t->progress.epoch, "steps", (json_int_t)t->progress.step, "seconds",
                   seconds, "first_step_s", t->first_step_s, "run", t->folder ? t->folder : "", "train",
                   metrics_json(&t->epoch_tally), "valid", metrics_json(&t->valid_tally), "planned_peak_mib",
                   (double)planned / 1048576.0, "measured_peak_mib", (double)measured / 1048576.0,
                   "planned_peak_bytes", (json_int_t)planned, "measured_peak_bytes", (json_int_t)measured,
                   "stall_s", tn_loader_stall_s(tn_feeder_loader(t->train)));
}

/* The status of a run whose loop has ended, with its explanation. */
static tn_status conclude(tn_fit *t, tn_status status) {
  const char *folder = t->folder ? t->folder : "";
  if (t->why == tn_why_stopped)
    return t->folder ? tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; go on with --resume %s",
                                (long long)t->progress.step, folder)
                     : tn_failf(&t->run->env, TN_ESTOPPED, "stopped after step %lld; nothing was saved",
                                (long long)t->progress.step);
  if (status != TN_ENONFINITE) return status;
  t->why = tn_why_nonfinite;
  if (!t->folder || !t->saved)
    return tn_failf(&t->run->env, status,
                    "%s; no checkpoint had been written; a lower lr or [optimizer] clip may help",
                    tn_error_text(&t->run->env));
  return tn_failf(&t->run->env, status,
                  "%s; %s/checkpoints/last is the last good one; a lower lr or [optimizer] clip may help",
                  tn_error_text(&t->run->env), folder);
}

tn_status tn_run_train(tn_run *run, char **json) {
  tn_fit t = {.run = run, .progress = {.best = NAN, .ended = true}, .started_s = tn_clock_s()};
  *json = NULL;
  tn_status status = set_up(&t);
  if (status == TN_OK) {
    status = conclude(&t, tn_fit_train(&t));
    tn_fit_post(&t, TN_EVENT_RUN_END, t.why ? t.why : "failed");
    tn_watch_stop(t.watch);
    t.watch = NULL;
    if (t.why) {
      tn_status printed = tn_json_take(run, result_of(&t), json);
      if (printed != TN_OK) status = printed;
    }
  }
  tear_down(&t);
  return status;
}
