/* core/train/loop/loop.c: epochs, validation, checkpoints, stopping. */
#include <math.h>

#include "core/base/thread.h"
#include "core/train/loop/training.h"

/* ---- events ---- */

tn_event tn_fit_event(const tn_fit *t, int32_t kind) {
  return (tn_event){.struct_size = sizeof(tn_event),
                    .kind = kind,
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
  tn_event event = tn_fit_event(t, what);
  event.text = text;
  tn_watch_post(t->watch, &event);
}

/* ---- checkpoints ---- */

/* Running statistics are every rank's own until they are needed. Doing it twice for a step would do no good,
 * and might change their last bits. */
static tn_status average(tn_fit *t) {
  if (t->averaged_at == t->progress.step) return TN_OK;
  t->averaged_at = t->progress.step;
  return tn_programs_average(&t->set, t->executor);
}

/* State that is not finite is seen by rank 0, which writes it; all have to know. */
static tn_status agree(tn_fit *t, tn_status status) {
  int32_t bad = status == TN_ENONFINITE;
  if (status != TN_OK && !bad) return status;
  t->failed_step = t->progress.step;
  TN_TRY(tn_ranks_decide(t->ranks, &t->run->env, t->run->rank, &bad));
  if (!bad || status != TN_OK) return status;
  return tn_failf(&t->run->env, TN_ENONFINITE, "state is not finite after step %lld",
                  (long long)t->progress.step);
}

static tn_status write_checkpoint(tn_fit *t, const char *name) {
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

static tn_status save(tn_fit *t, const char *name) {
  if (!t->writes) return TN_OK;
  TN_TRY(tn_fit_catch_up(t)); /* a loss that is not finite must not become a checkpoint */
  TN_TRY(average(t));
  return agree(t, write_checkpoint(t, name));
}

/* ---- epochs ---- */

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
    TN_TRY(check_limits(t));
    if (t->why || t->progress.step >= t->steps) break;
    tn_status status = tn_fit_step(t);
    if (status == TN_EOF) break;
    if (status != TN_OK) return status;
    if (save_every > 0 && t->progress.step % save_every == 0) TN_TRY(save(t, "last"));
  }
  return tn_fit_catch_up(t);
}

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
  TN_TRY(average(t));
  /* both loaders write into the same slots: the training one comes to rest first */
  TN_TRY(tn_feeder_rest(t->train));
  tn_pass pass = {t->executor,       t->set.index[TN_PROGRAM_EVAL],
                  t->valid,          &t->eval_controls,
                  &t->eval_readings, t->run->settings.run.fast_dev_run ? 1 : 0,
                  t->ranks};
  return tn_evaluate(t->run, &pass, &t->valid_tally);
}

static void post_epoch(tn_fit *t) {
  tn_event event = tn_fit_event(t, TN_EVENT_EPOCH_END);
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
  t->failed_step = t->progress.step;
  t->validated = !isfinite(tn_tally_means(&t->valid_tally)[0].value);
  if (t->validated)
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
