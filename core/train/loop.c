/* core/train/loop.c: steps, epochs, validation, checkpoints, stopping. */
#include <math.h>

#include "core/base/thread.h"
#include "core/train/fit.h"

/* ---- events ---- */

static tn_event event_of(const tn_fit *t, int32_t what) {
  return (tn_event){.struct_size = sizeof(tn_event),
                    .what = what,
                    .epoch = t->progress.epoch,
                    .step = t->progress.step,
                    .step_in_epoch = t->progress.batch,
                    .steps_in_epoch = t->steps_per_epoch,
                    .seconds = tn_clock_s() - t->started_s,
                    .samples_per_s = t->samples_per_s,
                    .lr = t->lr,
                    .text = "",
                    .skipped = -1};
}

void tn_fit_post(tn_fit *t, int32_t what, const char *text) {
  tn_event event = event_of(t, what);
  event.text = text;
  tn_watch_post(t->watch, &event);
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

/* Whether the update of a step was applied, and with which scale of the loss. */
static void note_update(tn_fit *t, tn_event *event, int32_t slot) {
  const float *skipped = t->step_readings.skipped[slot], *scale = t->step_readings.loss_scale[slot];
  event->loss_scale = scale ? (double)*scale : 0.0;
  event->skipped = skipped ? *skipped != 0.0f : -1;
  t->epoch_tally.skipped += event->skipped > 0;
}

/* With a scaled loss, a step whose loss is not finite is one that was skipped: other samples and a smaller
 * scale may do better. */
static bool is_lost(const tn_event *event) {
  return !isfinite(event->train[0].value) && event->loss_scale != 0.0 && event->skipped > 0;
}

/* Any other loss that is not finite ends the run, and so do too many lost steps in a row. */
static tn_status check_loss(tn_fit *t, const tn_event *event) {
  double loss = event->train[0].value;
  t->lost_in_a_row = is_lost(event) ? t->lost_in_a_row + 1 : 0;
  if (t->lost_in_a_row >= TN_MOST_LOST)
    return tn_failf(&t->run->env, TN_ENONFINITE,
                    "the loss is %g at step %lld, as in the %d steps before, which were skipped", loss,
                    (long long)event->step, TN_MOST_LOST - 1);
  if (isfinite(loss) || t->lost_in_a_row > 0) return TN_OK;
  return tn_failf(&t->run->env, TN_ENONFINITE, "the loss is %g at step %lld", loss, (long long)event->step);
}

/* The numbers of a step that has ended: sums, event, and whether they are finite. */
static tn_status read_step(tn_fit *t, tn_launched *step) {
  TN_TRY(tn_executor_slot_wait(t->executor, step->slot));
  tn_tally_reset(&t->step_tally);
  tn_tally_add(&t->step_tally, &t->step_readings, step->slot, step->samples);
  note_rate(t, step->samples);
  if (t->first_step_s == 0) t->first_step_s = tn_clock_s() - t->run->opened_s;
  tn_event *event = &step->event;
  event->seconds = tn_clock_s() - t->started_s;
  event->samples_per_s = t->samples_per_s;
  event->train = tn_tally_means(&t->step_tally);
  event->n_train = t->step_tally.n + 1;
  note_update(t, event, step->slot);
  /* a lost step would void the means of the epoch */
  if (!is_lost(event)) tn_tally_add(&t->epoch_tally, &t->step_readings, step->slot, step->samples);
  tn_watch_post(t->watch, event);
  TN_TRY(check_loss(t, event));
  return tn_feeder_return(t->train, step->slot);
}

/* Reads the oldest steps until at most `most` are left unread. */
static tn_status catch_up(tn_fit *t, int32_t most) {
  while (t->n_ahead > most) {
    tn_launched step = t->ahead[0];
    t->n_ahead--;
    for (int32_t i = 0; i < t->n_ahead; i++) t->ahead[i] = t->ahead[i + 1];
    TN_TRY(read_step(t, &step));
  }
  return TN_OK;
}

static tn_status take_step(tn_fit *t, int32_t slot, int64_t samples) {
  double factor = tn_lr_factor(&t->run->settings, t->progress.step, t->steps, t->steps_per_epoch);
  tn_controls_write(&t->step_controls, slot, t->progress.step, t->run->rank, factor);
  t->lr = t->step_controls.base_lr * factor;
  TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_STEP], slot));
  t->progress.step++;
  t->progress.batch++;
  t->progress.ended = false;
  t->ahead[t->n_ahead++] = (tn_launched){slot, samples, event_of(t, TN_EVENT_STEP)};
  return catch_up(t, t->most_ahead);
}

static tn_status save(tn_fit *t, const char *name) {
  if (!t->writes) return TN_OK;
  TN_TRY(catch_up(t, 0)); /* a loss that is not finite must not become a checkpoint */
  if (!t->folder) return TN_OK;
  tn_watch_flush(t->watch); /* what led to a checkpoint is on file before it */
  tn_progress progress = t->progress;
  progress.tally = t->epoch_tally;
  progress.seconds += tn_clock_s() - t->started_s;
  TN_TRY(tn_checkpoint_save(t->run, t->executor, &t->set, t->folder, name, &progress));
  t->saved = true;
  tn_text path = tn_text_new(&t->run->env);
  tn_text_addf(&path, "%s/checkpoints/%s", t->folder, name);
  tn_fit_post(t, TN_EVENT_CHECKPOINT, path.v ? path.v : name);
  tn_text_free(&path);
  return TN_OK;
}

enum { GO_ON = 0, STOP = 1, OUT_OF_TIME = 2 };

static int32_t should_end(const tn_fit *t) {
  const tn_run_section *run = &t->run->settings.run;
  if (atomic_load(&t->run->stop)) return STOP;
  return run->max_time > 0 && tn_clock_s() - t->started_s >= run->max_time ? OUT_OF_TIME : GO_ON;
}

/* Sets `why` when the run should end before its last step, which is for rank 0 to decide. */
static tn_status check_limits(tn_fit *t) {
  static const char *const whys[] = {NULL, tn_why_stopped, tn_why_out_of_time};
  int32_t decision = t->run->rank == 0 ? should_end(t) : GO_ON;
  TN_TRY(tn_ranks_decide(t->ranks, &t->run->env, t->run->rank, &decision));
  t->why = whys[decision];
  return TN_OK;
}

static tn_status train_epoch(tn_fit *t) {
  int64_t save_every = t->run->settings.run.save_every;
  TN_TRY(tn_feeder_start(t->train, t->progress.epoch, t->progress.batch));
  if (t->progress.batch == 0) tn_tally_reset(&t->epoch_tally);
  t->rate_s = 0;
  for (;;) {
    int32_t slot;
    int64_t samples;
    TN_TRY(check_limits(t));
    if (t->why || t->progress.step >= t->steps) break;
    tn_status status = tn_feeder_next(t->train, &slot, &samples);
    if (status == TN_EOF) break;
    if (status != TN_OK) return status;
    TN_TRY(take_step(t, slot, samples));
    if (save_every > 0 && t->progress.step % save_every == 0) TN_TRY(save(t, "last"));
  }
  return catch_up(t, 0);
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

static tn_status validate(tn_fit *t) {
  tn_tally_reset(&t->valid_tally);
  if (!t->valid) return TN_OK;
  /* both loaders write into the same slots: the training one comes to rest first */
  TN_TRY(tn_feeder_rest(t->train));
  tn_pass pass = {t->executor,       t->set.index[TN_PROGRAM_EVAL],
                  t->valid,          &t->eval_controls,
                  &t->eval_readings, t->run->settings.run.fast_dev_run ? 1 : 0,
                  t->ranks};
  return tn_evaluate(t->run, &pass, &t->valid_tally);
}

static void post_epoch(tn_fit *t) {
  tn_event event = event_of(t, TN_EVENT_EPOCH_END);
  event.train = tn_tally_means(&t->epoch_tally);
  event.n_train = t->epoch_tally.steps > 0 ? t->epoch_tally.n + 1 : 0;
  event.valid = tn_tally_means(&t->valid_tally);
  event.n_valid = t->valid_tally.steps > 0 ? t->valid_tally.n + 1 : 0;
  if (t->step_readings.skipped[0]) event.skipped = t->epoch_tally.skipped;
  tn_watch_post(t->watch, &event);
}

static tn_status end_epoch(tn_fit *t) {
  double value;
  TN_TRY(validate(t));
  post_epoch(t);
  if (!isfinite(tn_tally_means(&t->valid_tally)[0].value))
    return tn_failf(&t->run->env, TN_ENONFINITE, "the validation loss is %g after step %lld",
                    t->valid_tally.means[0].value, (long long)t->progress.step);
  if (t->progress.batch >= t->steps_per_epoch) {
    t->progress.epoch++;
    t->progress.batch = 0;
  }
  t->progress.ended = true;
  tn_tally *judged = t->valid_tally.steps > 0 ? &t->valid_tally : &t->epoch_tally;
  if (judged->steps > 0 && better(t, tn_tally_means(judged), &value)) {
    t->progress.best = value;
    TN_TRY(save(t, "best"));
  }
  return save(t, "last");
}

/* Steps are left, or what ends the epoch after the last of them. */
static bool goes_on(const tn_fit *t) {
  return !t->why && (t->progress.step < t->steps || !t->progress.ended);
}

/* The learning rate of the last step before this process. */
static double lr_before(const tn_fit *t) {
  if (t->progress.step == 0) return 0;
  return t->step_controls.base_lr *
         tn_lr_factor(&t->run->settings, t->progress.step - 1, t->steps, t->steps_per_epoch);
}

tn_status tn_fit_train(tn_fit *t) {
  t->lr = lr_before(t);
  tn_fit_post(t, TN_EVENT_RUN_START, "");
  if (t->steps == 0) TN_TRY(save(t, "last")); /* no training: the initial state is the result */
  while (goes_on(t)) {
    TN_TRY(train_epoch(t));
    if (t->why == tn_why_stopped) break;
    tn_status status = end_epoch(t);
    if (status == TN_ESTOPPED) t->why = tn_why_stopped;
    if (status != TN_OK && status != TN_ESTOPPED) return status;
  }
  if (t->why == tn_why_stopped) TN_TRY(save(t, "last"));
  if (!t->why) t->why = tn_why_finished;
  return TN_OK;
}
