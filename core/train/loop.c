/* core/train/loop.c: training: epochs, steps, validation, checkpoints, stopping. */
#include "core/train/session.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/base/thread.h"
#include "core/train/result.h"

/* Why a run ended; also the result's "status". */
static const char finished[] = "finished", stopped[] = "stopped", out_of_time[] = "max_time",
                  non_finite[] = "non-finite";

typedef struct tn_fit {
  tn_run *run;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  tn_feeder *train, *valid; /* valid NULL: no validation */
  tn_tally epoch_tally, step_tally, valid_tally;
  tn_watch *watch;
  char *folder; /* NULL: nothing is written */
  tn_progress progress;
  int64_t steps_per_epoch, steps; /* of the whole run */
  int32_t slots;
  double started_s, first_step_s, lr;
  double rate_s; /* when the last step ended, for samples per second */
  double samples_per_s;
  const char *why; /* NULL: still running */
} tn_fit;

/* ---- events ---- */

static tn_event event_of(const tn_fit *t, int32_t what) {
  int64_t in_epoch = t->progress.batch;
  return (tn_event){.struct_size = sizeof(tn_event),
                    .what = what,
                    .epoch = t->progress.epoch,
                    .step = t->progress.step,
                    .step_in_epoch = in_epoch,
                    .steps_in_epoch = t->steps_per_epoch,
                    .seconds = tn_clock_s() - t->started_s,
                    .samples_per_s = t->samples_per_s,
                    .lr = t->lr,
                    .text = ""};
}

static void post_text(tn_fit *t, int32_t what, const char *text) {
  tn_event event = event_of(t, what);
  event.text = text;
  tn_watch_post(t->watch, &event);
}

/* ---- set-up ---- */

static int64_t planned_steps(const tn_fit *t) {
  const tn_run_section *run = &t->run->settings.run;
  int64_t steps = run->epochs * t->steps_per_epoch;
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
  t->slots = (int32_t)s->data[TN_SPLIT_TRAIN].section.prefetch + 1;
  return tn_executor_create(&t->run->env, t->device, t->set.map, t->set.list, t->set.n, t->slots,
                            &t->executor);
}

static tn_status make_feeders(tn_fit *t) {
  tn_run *run = t->run;
  TN_TRY(tn_feeder_create(run, TN_SPLIT_TRAIN, t->executor, t->set.index[TN_PROGRAM_STEP],
                          t->set.programs[TN_PROGRAM_STEP], t->slots, &t->train));
  t->steps_per_epoch = tn_loader_batches(tn_feeder_loader(t->train));
  t->steps = planned_steps(t);
  if (!t->set.programs[TN_PROGRAM_EVAL]) return TN_OK;
  tn_status status = tn_feeder_create(run, TN_SPLIT_VALID, t->executor, t->set.index[TN_PROGRAM_EVAL],
                                      t->set.programs[TN_PROGRAM_EVAL], t->slots, &t->valid);
  /* a source without validation data is fine unless [data.valid] asked for it */
  if (status == TN_EUNAVAILABLE && !tn_ini_section(&run->ini, "data.valid")) {
    tn_logf(&run->env, TN_LOG_INFO, "no validation: %s", tn_error_text(&run->env));
    return TN_OK;
  }
  return status;
}

static tn_status start_state(tn_fit *t) {
  tn_run *run = t->run;
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_INIT], 0));
  TN_TRY(tn_executor_slot_wait(t->executor, 0));
  TN_TRY(tn_weights_load_configured(run, t->executor, t->set.map));
  if (run->resume) TN_TRY(tn_run_folder_resume(run, &t->folder));
  if (t->folder) return tn_checkpoint_load(run, t->executor, &t->set, t->folder, "last", &t->progress);
  return tn_run_folder_make(run, &t->folder);
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
                      .terminal_columns = run->terminal_columns};
  return tn_watch_start(run, &info, &t->watch);
}

static tn_status set_up(tn_fit *t) {
  TN_TRY(tn_run_device(t->run, &t->device));
  TN_TRY(build_programs(t));
  TN_TRY(make_feeders(t));
  TN_TRY(tn_tally_init(&t->set.arena, &t->set, &t->epoch_tally));
  TN_TRY(tn_tally_init(&t->set.arena, &t->set, &t->step_tally));
  TN_TRY(tn_tally_init(&t->set.arena, &t->set, &t->valid_tally));
  TN_TRY(start_state(t));
  return start_watch(t);
}

static void tear_down(tn_fit *t) {
  tn_watch_stop(t->watch);
  tn_feeder_destroy(t->train);
  tn_feeder_destroy(t->valid);
  tn_executor_destroy(t->executor);
  tn_programs_free(t->run, &t->set);
  tn_device_close(t->device);
  tn_release(&t->run->env, t->folder);
}

/* ---- steps ---- */

static void note_rate(tn_fit *t, int64_t samples) {
  double now = tn_clock_s(), took = now - t->rate_s;
  if (t->rate_s > 0 && took > 0) {
    double rate = (double)samples / took;
    t->samples_per_s = t->samples_per_s > 0 ? 0.9 * t->samples_per_s + 0.1 * rate : rate;
  }
  t->rate_s = now;
}

/* The numbers of a finished step: sums, event, and whether they are finite. */
static tn_status collect(tn_fit *t, int32_t slot, int64_t samples) {
  TN_TRY(tn_executor_slot_wait(t->executor, slot));
  int32_t index = t->set.index[TN_PROGRAM_STEP];
  tn_tally_reset(&t->step_tally);
  tn_tally_add(&t->step_tally, t->executor, index, slot, samples);
  tn_tally_add(&t->epoch_tally, t->executor, index, slot, samples);
  note_rate(t, samples);
  if (t->first_step_s == 0) t->first_step_s = tn_clock_s() - t->run->opened_s;
  tn_event event = event_of(t, TN_EVENT_STEP);
  event.train = tn_tally_means(&t->step_tally);
  event.n_train = t->step_tally.n + 1;
  tn_watch_post(t->watch, &event);
  if (isfinite(event.train[0].value)) return TN_OK;
  return tn_failf(&t->run->env, TN_ENONFINITE,
                  "the loss is %g at step %lld; the last good checkpoint is kept; try a lower lr or clip",
                  event.train[0].value, (long long)t->progress.step);
}

static tn_status take_step(tn_fit *t, int32_t slot, int64_t samples) {
  const tn_settings *s = &t->run->settings;
  int32_t index = t->set.index[TN_PROGRAM_STEP];
  double factor = tn_lr_factor(s, t->progress.step, t->steps, t->steps_per_epoch);
  tn_control_write(t->executor, index, slot, &t->set.plan, t->progress.step, factor);
  t->lr = t->set.plan.n_controls > 0 ? t->set.plan.controls[0].values[0] * factor : 0.0;
  TN_TRY(tn_executor_run(t->executor, index, slot));
  t->progress.step++;
  t->progress.batch++;
  TN_TRY(collect(t, slot, samples));
  return tn_feeder_return(t->train, slot);
}

static tn_status save(tn_fit *t, const char *name) {
  if (!t->folder) return TN_OK;
  tn_progress progress = t->progress;
  progress.seconds += tn_clock_s() - t->started_s;
  TN_TRY(tn_checkpoint_save(t->run, t->executor, &t->set, t->folder, name, &progress));
  post_text(t, TN_EVENT_CHECKPOINT, name);
  return TN_OK;
}

/* Sets `why` when the run should end before its last step. */
static void check_limits(tn_fit *t) {
  const tn_run_section *run = &t->run->settings.run;
  if (atomic_load(&t->run->stop))
    t->why = stopped;
  else if (run->max_time > 0 && tn_clock_s() - t->started_s >= run->max_time)
    t->why = out_of_time;
}

static tn_status train_epoch(tn_fit *t) {
  int64_t save_every = t->run->settings.run.save_every;
  TN_TRY(tn_feeder_start(t->train, t->progress.epoch, t->progress.batch));
  tn_tally_reset(&t->epoch_tally);
  t->rate_s = 0;
  while (t->progress.step < t->steps && !t->why) {
    int32_t slot;
    int64_t samples;
    tn_status status = tn_feeder_next(t->train, &slot, &samples);
    if (status == TN_EOF) break;
    if (status != TN_OK) return status;
    TN_TRY(take_step(t, slot, samples));
    if (save_every > 0 && t->progress.step % save_every == 0) TN_TRY(save(t, "last"));
    check_limits(t);
  }
  return TN_OK;
}

/* ---- epochs ---- */

/* Larger is better for metrics, smaller for losses. */
static bool better(const tn_fit *t, const tn_metric *metrics, double *value) {
  const char *best = t->run->settings.run.best;
  int32_t chosen = 0; /* the loss */
  for (int32_t i = t->set.n_measures; i > 0; i--)
    if (*best ? tn_text_equal(metrics[i].name, best) : !t->set.measures[i - 1].is_loss) chosen = i;
  bool is_loss = chosen == 0 || t->set.measures[chosen - 1].is_loss;
  *value = metrics[chosen].value;
  return isnan(t->progress.best) || (is_loss ? *value < t->progress.best : *value > t->progress.best);
}

static tn_status validate(tn_fit *t, const tn_metric **metrics) {
  *metrics = NULL;
  if (!t->valid) return TN_OK;
  /* both loaders write into the same slots: the training one comes to rest first */
  TN_TRY(tn_loader_start((tn_loader *)(uintptr_t)tn_feeder_loader(t->train), t->progress.epoch, 0));
  TN_TRY(tn_evaluate(t->run, t->executor, t->set.index[TN_PROGRAM_EVAL], t->valid,
                     t->run->settings.run.fast_dev_run ? 1 : 0, &t->valid_tally));
  *metrics = tn_tally_means(&t->valid_tally);
  return TN_OK;
}

static tn_status end_epoch(tn_fit *t) {
  const tn_metric *valid;
  TN_TRY(validate(t, &valid));
  tn_event event = event_of(t, TN_EVENT_EPOCH_END);
  event.train = tn_tally_means(&t->epoch_tally);
  event.n_train = t->epoch_tally.n + 1;
  event.valid = valid;
  event.n_valid = valid ? t->valid_tally.n + 1 : 0;
  tn_watch_post(t->watch, &event);
  if (t->progress.batch >= t->steps_per_epoch) {
    t->progress.epoch++;
    t->progress.batch = 0;
  }
  double value;
  if (better(t, valid ? valid : event.train, &value)) {
    t->progress.best = value;
    TN_TRY(save(t, "best"));
  }
  return save(t, "last");
}

static tn_status train(tn_fit *t) {
  post_text(t, TN_EVENT_RUN_START, "");
  if (t->steps == 0) TN_TRY(save(t, "last")); /* no training: the initial state is the result */
  while (t->progress.step < t->steps && !t->why) {
    TN_TRY(train_epoch(t));
    if (t->why == stopped) break;
    TN_TRY(end_epoch(t));
  }
  if (t->why == stopped) TN_TRY(save(t, "last"));
  if (!t->why) t->why = finished;
  return TN_OK;
}

/* ---- the result ---- */

static json_t *result_of(tn_fit *t) {
  double seconds = tn_clock_s() - t->started_s;
  bool direct = t->device->target.properties.host_addressable != 0;
  json_t *json = json_pack("{s:s, s:I, s:I, s:f, s:f, s:s}", "status", t->why, "epochs",
                           (json_int_t)t->progress.epoch, "steps", (json_int_t)t->progress.step, "seconds",
                           seconds, "first_step_s", t->first_step_s, "run", t->folder ? t->folder : "");
  int64_t planned = tn_executor_planned_bytes(t->set.map, t->set.list, t->set.n, t->slots, direct);
  json_object_set_new(json, "train", tn_metrics_json(tn_tally_means(&t->epoch_tally), t->epoch_tally.n + 1));
  json_object_set_new(
      json, "valid",
      tn_metrics_json(tn_tally_means(&t->valid_tally), t->valid_tally.steps > 0 ? t->valid_tally.n + 1 : 0));
  json_object_set_new(json, "planned_peak_mib", json_real((double)planned / 1048576.0));
  json_object_set_new(json, "measured_peak_mib",
                      json_real((double)tn_executor_measured_bytes(t->executor) / 1048576.0));
  json_object_set_new(json, "planned_peak_bytes", json_integer(planned));
  json_object_set_new(json, "measured_peak_bytes", json_integer(tn_executor_measured_bytes(t->executor)));
  json_object_set_new(json, "stall_s", json_real(tn_loader_stall_s(tn_feeder_loader(t->train))));
  return json;
}

tn_status tn_run_train(tn_run *run, char **json) {
  tn_fit t = {.run = run, .progress = {.best = NAN}, .started_s = tn_clock_s()};
  *json = NULL;
  tn_status status = set_up(&t);
  if (status == TN_OK) {
    status = train(&t);
    if (status == TN_ENONFINITE) t.why = non_finite;
    post_text(&t, TN_EVENT_RUN_END, t.why ? t.why : "failed");
    tn_watch_stop(t.watch);
    t.watch = NULL;
    if (t.why == stopped)
      status = tn_failf(&run->env, TN_ESTOPPED, "stopped after step %lld; resume with --resume %s",
                        (long long)t.progress.step, t.folder ? t.folder : "auto");
    if (t.why) {
      tn_status printed = tn_json_take(run, result_of(&t), json);
      if (printed != TN_OK) status = printed;
    }
  }
  tear_down(&t);
  return status;
}
