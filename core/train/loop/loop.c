/* core/train/loop/loop.c: epochs, validation, checkpoints, and the end of a run. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/exec/device/range.h"
#include "core/step/update/averages.h"
#include "core/train/loop/judge.h"

/* ---- declared waits ---- */

static void loop_flush(tn_training *t) {
  tn_flight_wait before = tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "its observers");
  tn_observers_flush(t->observers);
  tn_flight_end_wait(t->device->flight, &before);
}

/* The transforms of an epoch have the options of its first step. */
static tn_status loop_start_feeder(tn_training *t) {
  const tn_step_position first = tn_training_at(t, t->progress.step - t->progress.batch);
  tn_schedules_move_transforms(&t->run->settings, &first);
  tn_flight_wait before = tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "its data");
  tn_status status = tn_training_start_data(t);
  tn_flight_end_wait(t->device->flight, &before);
  return status;
}

static tn_status loop_stop_feeder(tn_training *t) {
  tn_flight_wait before = tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "its data");
  tn_status status = tn_feeder_stop(t->train);
  tn_flight_end_wait(t->device->flight, &before);
  return status;
}

/* ---- checkpoints ---- */

/* Averages running statistics over ranks when they are needed. A second average after the same step might
 * change their last bits. */
static tn_status loop_average_statistics(tn_training *t) {
  if (t->averaged_at == t->progress.step) return TN_OK;
  t->averaged_at = t->progress.step;
  return tn_programs_average(&t->set, t->executor, t->phase);
}

/* The ends of epochs from [optimizer] swa_from on, up to here: the number of moments in the mean. */
static int64_t loop_moments(const tn_training *t) {
  int64_t done = t->progress.epoch + (t->progress.batch >= t->steps_per_epoch),
          from = t->run->settings.optimizer.swa_from;
  return done >= from ? done - from + 1 : 0;
}

/* Brings running statistics and means up to date: before validation, and before a checkpoint. */
static tn_status loop_update_averages(tn_training *t) {
  TN_TRY(loop_average_statistics(t));
  return t->run->settings.optimizer.swa_from > 0
             ? tn_programs_update_mean(&t->set, t->executor, loop_moments(t))
             : TN_OK;
}

/* Rank 0 writes the checkpoint and finds state that is not finite; the other ranks learn it here. */
static tn_status loop_agree(tn_training *t, tn_status status) {
  int32_t bad = status == TN_ENONFINITE;
  if (status != TN_OK && !bad) return status;
  t->failed_step = t->progress.step;
  TN_TRY(tn_ranks_decide(t->ranks, &t->run->env, t->run->rank, &bad));
  if (!bad || status != TN_OK) return status;
  return tn_failf(&t->run->env, TN_ENONFINITE, "state is not finite after step %lld",
                  (long long)t->progress.step);
}

typedef struct loop_checkpoint {
  tn_training *t;
  const char *name;
} loop_checkpoint;

/* On rank 0. */
static tn_status loop_write_checkpoint(void *context) {
  const loop_checkpoint *checkpoint = context;
  tn_training *t = checkpoint->t;
  const char *name = checkpoint->name;
  if (t->folder == NULL) return TN_OK;
  loop_flush(t); /* logs are complete up to the checkpoint */
  tn_progress progress = t->progress;
  progress.sums = t->epoch_sums;
  if (!progress.ended) progress.score = NAN;
  progress.epoch_samples = tn_training_epoch_samples(t);
  progress.seconds += tn_clock_s() - t->started_s;
  tn_flight_wait before =
      tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "a checkpoint that it writes");
  tn_flight_save(t->device->flight, true);
  tn_status status = tn_checkpoint_save(t->run, t->executor, &t->set, t->folder, name, &progress);
  tn_flight_save(t->device->flight, false);
  tn_flight_end_wait(t->device->flight, &before);
  if (status != TN_OK) return status;
  t->saved = true;
  if (tn_text_equal(name, "last"))
    TN_TRY(tn_checkpoint_keep(t->run, t->folder, progress.step, t->smaller_is_better));
  tn_text path = tn_text_new(&t->run->env);
  tn_text_addf(&path, "%s/checkpoints/%s", t->folder, name);
  tn_training_post(t, TN_EVENT_CHECKPOINT, path.v ? path.v : name);
  tn_text_free(&path);
  return TN_OK;
}

static tn_status loop_save(tn_training *t, const char *name) {
  if (!t->writes) return TN_OK;
  TN_TRY(tn_training_read_steps(t)); /* a loss that is not finite fails here, before the checkpoint */
  TN_TRY(loop_update_averages(t));
  loop_checkpoint checkpoint = {t, name};
  tn_divided_access divided = tn_training_divided(t);
  tn_range_begin(t->device, "checkpoint");
  tn_status status = tn_divided_run(&divided, loop_write_checkpoint, &checkpoint);
  tn_range_end(t->device);
  return loop_agree(t, status);
}

/* Averages that are divided among ranks are gathered for validation alone. */
static tn_status loop_gather_averages(const tn_training *t) {
  const tn_settings *s = &t->run->settings;
  bool divided = tn_settings_shards(s, tn_run_ranks(t->run)) > 1 || t->set.host_optimizer;
  return divided && tn_settings_average(s) ? tn_programs_refresh(&t->set, t->executor) : TN_OK;
}

/* ---- epochs ---- */

enum { CONTINUE = 0, STOP = 1, OUT_OF_TIME = 2, OBSERVER = 3, PAUSE = 4 };

/* How often the file is looked for: folders may be far away. */
static const double LOOK_S = 0.25;

/* The file is removed, so that the run can be resumed. */
static bool loop_takes_stop_file(tn_training *t) {
  char path[4096];
  double now = tn_clock_s();
  if (t->folder == NULL || now - t->looked_s < LOOK_S) return false;
  t->looked_s = now;
  snprintf(path, sizeof path, "%s/" TN_STOP_NAME, t->folder);
  t->stop_file = unlink(path) == 0;
  return t->stop_file;
}

static int32_t loop_should_end(tn_training *t) {
  const tn_run_section *run = &t->run->settings.run;
  if (loop_takes_stop_file(t)) return STOP;
  if (atomic_load(&t->run->stop)) return STOP;
  if (tn_observers_stop_reason(t->observers) != NULL) return OBSERVER;
  if (run->pause_after > 0 && t->progress.epoch >= run->pause_after) return PAUSE;
  return run->max_time > 0 && tn_clock_s() - t->started_s >= run->max_time ? OUT_OF_TIME : CONTINUE;
}

/* Sets `end_reason` if rank 0 decides that the run ends before its last step. */
static tn_status loop_check_limits(tn_training *t) {
  static const char *const reasons[] = {NULL, tn_end_stopped, tn_end_out_of_time, tn_end_observer,
                                        tn_end_paused};
  int32_t decision = t->run->rank == 0 ? loop_should_end(t) : CONTINUE;
  TN_TRY(tn_ranks_decide(t->ranks, &t->run->env, t->run->rank, &decision));
  t->end_reason = reasons[decision];
  return TN_OK;
}

/* A stop at which a checkpoint is saved. */
static bool loop_is_stop(const tn_training *t, tn_status status) {
  return status == TN_ESTOPPED && !t->run->gave_up;
}

static tn_status loop_prune(tn_training *t) {
  if (!tn_training_prunes(t)) return TN_OK;
  TN_TRY(tn_training_read_steps(t));
  return tn_training_prune(t);
}

static tn_status loop_train_epoch(tn_training *t) {
  int64_t save_every = t->run->settings.run.save_every;
  TN_TRY(loop_start_feeder(t));
  if (t->progress.batch == 0) tn_metric_sums_reset(&t->epoch_sums);
  t->rate_s = 0;
  for (;;) {
    TN_TRY(loop_check_limits(t));
    if (t->end_reason || t->progress.step >= t->steps) break;
    TN_TRY(loop_prune(t));
    tn_status status = tn_training_step(t);
    if (loop_is_stop(t, status)) t->end_reason = tn_end_stopped; /* while it waited for a batch */
    if (status == TN_EOF || loop_is_stop(t, status)) break;
    if (status != TN_OK) return status;
    if (save_every > 0 && t->progress.step % save_every == 0) TN_TRY(loop_save(t, "last"));
  }
  return tn_training_read_steps(t);
}

/* The means so far of a validation that runs. */
static void loop_post_validation(void *context, int64_t batches) {
  tn_training *t = context;
  if (t->observers == NULL) return;
  tn_event event = tn_training_event(t, TN_EVENT_VALID_STEP);
  event.step_in_epoch = batches;
  event.steps_in_epoch = t->run->settings.run.fast_dev_run ? 1 : tn_feeder_updates(t->valid);
  event.valid = tn_metric_sums_means(&t->valid_sums);
  event.n_valid = t->valid_sums.n_means;
  tn_observers_post(t->observers, &event);
}

/* Whether the epoch that ends here is one of [run] valid_every; the last one always is, as is an epoch that a
 * limit has cut. */
static bool loop_is_validated(const tn_training *t) {
  int64_t ended = t->progress.epoch + 1, every = t->run->settings.run.valid_every;
  return t->end_reason != NULL || t->progress.step >= t->steps || ended % every == 0;
}

static tn_status loop_validate(tn_training *t) {
  tn_metric_sums_reset(&t->valid_sums);
  if (t->valid == NULL || !loop_is_validated(t)) return TN_OK;
  TN_TRY(loop_update_averages(t));
  TN_TRY(loop_gather_averages(t));
  /* both loaders write into the same slots, so the training loader stops first */
  TN_TRY(loop_stop_feeder(t));
  tn_validation pass = tn_training_validation(t);
  pass.progress = loop_post_validation;
  pass.context = t;
  tn_range_begin(t->device, "validation");
  tn_status status = tn_validation_run(t->run, &pass, &t->valid_sums);
  if (status == TN_OK) status = tn_training_show_samples(t);
  tn_range_end(t->device);
  return status;
}

static void loop_post_epoch(tn_training *t) {
  tn_event event = tn_training_event(t, TN_EVENT_EPOCH_END);
  event.train = tn_metric_sums_means(&t->epoch_sums);
  event.n_train = t->epoch_sums.steps > 0 ? t->epoch_sums.n_means : 0;
  event.valid = tn_metric_sums_means(&t->valid_sums);
  event.n_valid = t->valid_sums.steps > 0 ? t->valid_sums.n_means : 0;
  if (t->step_outputs.skipped[0]) event.skipped = t->epoch_sums.skipped;
  event.sparsity = tn_training_sparsity(t);
  tn_flight_wait before = tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "its observers");
  tn_observers_post(t->observers, &event);
  tn_flight_end_wait(t->device->flight, &before);
}

/* A metric that is not finite is the worst one: an epoch that has one is no improvement. */
static double loop_finite_metric(double value, bool larger_is_better) {
  return isfinite(value) ? value : larger_is_better ? -DBL_MAX : DBL_MAX;
}

/* Tells the schedule the value of [schedule] metric after a complete epoch. */
static void loop_tell_schedule(tn_training *t) {
  const tn_settings *s = &t->run->settings;
  tn_metric_sums *sums = tn_training_judged(t);
  int32_t chosen = 0, mode = s->schedule->section.metric_mode; /* the loss */
  if (s->schedule->kind->epoch == NULL || sums == NULL) return;
  const tn_metric *metrics = tn_metric_sums_means(sums);
  for (int32_t i = sums->n_means - 1; i > 0; i--)
    if (tn_text_equal(metrics[i].name, s->schedule->section.metric)) chosen = i;
  bool rises = chosen > 0 && !sums->told[chosen]->falls;
  bool larger_is_better = mode == TN_METRIC_AUTO ? rises : mode == TN_METRIC_MAX;
  const tn_schedule_result result = {sizeof result, larger_is_better, t->progress.epoch - 1,
                                     loop_finite_metric(metrics[chosen].value, larger_is_better)};
  s->schedule->kind->epoch(s->schedule->options, &result, t->progress.schedule);
}

static tn_status loop_end_epoch(tn_training *t) {
  TN_TRY(loop_validate(t));
  loop_post_epoch(t);
  loop_flush(t); /* one that asks for the end now ends the run here */
  t->failed_step = t->progress.step;
  t->validation_failed = !isfinite(tn_metric_sums_means(&t->valid_sums)[0].value);
  if (t->validation_failed)
    return tn_failf(&t->run->env, TN_ENONFINITE, "the validation loss is %s after step %lld",
                    tn_training_nonfinite_text(t->valid_sums.means[0].value), (long long)t->progress.step);
  if (t->progress.batch >= t->steps_per_epoch) {
    t->progress.epoch++;
    t->progress.batch = 0;
    loop_tell_schedule(t);
  }
  t->progress.ended = true;
  if (tn_training_judge(t)) TN_TRY(loop_save(t, "best"));
  if (t->end_reason == NULL && tn_training_reached_target(t)) t->end_reason = tn_end_target;
  if (tn_training_out_of_patience(t)) t->end_reason = tn_end_early;
  return loop_save(t, "last");
}

/* Steps are left, or the end of the last epoch is not done. */
static bool loop_continues(const tn_training *t) {
  return t->end_reason == NULL && (t->progress.step < t->steps || !t->progress.ended);
}

/* The learning rate of the last step of an earlier process. */
static double loop_last_learning_rate(const tn_training *t) {
  if (t->progress.step == 0) return 0;
  const tn_step_position at = tn_training_at(t, t->progress.step - 1);
  return tn_control_block_lr(&t->step_block, &at);
}

tn_status tn_training_run(tn_training *t) {
  t->lr = loop_last_learning_rate(t);
  tn_training_place_profile(t);
  tn_training_post(t, TN_EVENT_RUN_START, "");
  if (tn_training_out_of_patience(t)) t->end_reason = tn_end_early; /* resumed after its end */
  if (t->steps == 0) TN_TRY(loop_save(t, "last")); /* without training, the initial state is the result */
  while (loop_continues(t)) {
    if (t->progress.ended) TN_TRY(loop_check_limits(t)); /* between two epochs */
    if (t->end_reason) break;
    TN_TRY(loop_train_epoch(t));
    if (t->end_reason == tn_end_stopped) break;
    tn_status status = loop_end_epoch(t);
    if (loop_is_stop(t, status)) t->end_reason = tn_end_stopped;
    if (status != TN_OK && !loop_is_stop(t, status)) return status;
  }
  bool unsaved = t->end_reason != NULL && t->progress.step == 0; /* the end came before the first step */
  if (t->end_reason == tn_end_stopped || unsaved) TN_TRY(loop_save(t, "last"));
  if (t->end_reason == NULL) t->end_reason = tn_end_finished;
  return tn_training_end_profile(t);
}
