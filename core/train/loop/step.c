/* core/train/loop/step.c: one update after the other: launched, and read when it has ended. An update has one
 * batch, or the micro-batches of [optimizer] accumulate. */
#include <math.h>

#include "core/base/thread.h"
#include "core/train/loop/training.h"

/* ---- numbers of a step that has ended ---- */

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
  t->failed_step = event->step;
  t->lost_in_a_row = is_lost(event) ? t->lost_in_a_row + 1 : 0;
  if (t->lost_in_a_row >= TN_MOST_LOST)
    return tn_failf(&t->run->env, TN_ENONFINITE,
                    "the loss is %g at step %lld, as in the %d steps before, which were skipped", loss,
                    (long long)event->step, TN_MOST_LOST - 1);
  if (isfinite(loss) || t->lost_in_a_row > 0) return TN_OK;
  return tn_failf(&t->run->env, TN_ENONFINITE, "the loss is %g at step %lld", loss, (long long)event->step);
}

/* Sums of all micro-batches; only the last one's program is the step. */
static void add_sums(const tn_fit *t, const tn_launched *step, tn_tally *tally) {
  int32_t last = t->micro_batches - 1;
  for (int32_t m = 0; m < last; m++) tn_tally_add_part(tally, &t->micro_readings, step->slots[m]);
  tn_tally_add(tally, &t->step_readings, step->slots[last], step->samples);
}

static tn_status wait_for(tn_fit *t, const tn_launched *step) {
  for (int32_t m = 0; m < t->micro_batches; m++) TN_TRY(tn_executor_slot_wait(t->executor, step->slots[m]));
  return TN_OK;
}

static tn_status give_back(tn_fit *t, const tn_launched *step) {
  for (int32_t m = 0; m < t->micro_batches; m++) TN_TRY(tn_feeder_return(t->train, step->slots[m]));
  return TN_OK;
}

/* Sums, event, and whether they are finite. */
static tn_status read_step(tn_fit *t, tn_launched *step) {
  TN_TRY(wait_for(t, step));
  tn_tally_reset(&t->step_tally);
  add_sums(t, step, &t->step_tally);
  note_rate(t, step->samples);
  if (t->first_step_s == 0) t->first_step_s = tn_clock_s() - t->run->opened_s;
  tn_event *event = &step->event;
  event->seconds = tn_clock_s() - t->started_s;
  event->samples_per_s = t->samples_per_s;
  event->train = tn_tally_means(&t->step_tally);
  event->n_train = t->step_tally.n + 1;
  note_update(t, event, step->slots[t->micro_batches - 1]);
  /* a lost step would void the means of the epoch */
  if (!is_lost(event)) add_sums(t, step, &t->epoch_tally);
  tn_watch_post(t->watch, event);
  TN_TRY(check_loss(t, event));
  return give_back(t, step);
}

/* Reads the oldest steps until at most `most` are left unread. */
static tn_status catch_up(tn_fit *t, int32_t most) {
  while (t->n_ahead > most) {
    tn_launched step = t->ahead[0];
    t->n_ahead--;
    for (int32_t i = 0; i < t->n_ahead; i++) t->ahead[i] = t->ahead[i + 1];
    t->ahead[t->n_ahead].slots = step.slots; /* whose memory the next one will use */
    TN_TRY(read_step(t, &step));
  }
  return TN_OK;
}

tn_status tn_fit_catch_up(tn_fit *t) { return catch_up(t, 0); }

/* ---- launching ---- */

/* An epoch has a whole number of updates: it ends before the first of the batches, or not at all. */
static tn_status fetch(tn_fit *t, tn_launched *step) {
  step->samples = 0;
  for (int32_t m = 0; m < t->micro_batches; m++) {
    int64_t samples;
    TN_TRY(tn_feeder_next(t->train, &step->slots[m], &samples));
    step->samples += samples;
  }
  return TN_OK;
}

/* Micro-batch m of a rank is block m * ranks + rank of the global batch. */
static void write_controls(tn_fit *t, const tn_launched *step, double lr_factor) {
  const tn_controls *all[] = {&t->step_controls, &t->weigh_controls, &t->micro_controls};
  int32_t programs = t->micro_batches > 1 ? 3 : 1;
  for (int32_t m = 0; m < t->micro_batches; m++)
    for (int32_t i = 0; i < programs; i++)
      tn_controls_write(all[i], step->slots[m], t->progress.step,
                        (int64_t)m * tn_run_ranks(t->run) + t->run->rank, lr_factor);
}

/* Of several micro-batches, all are weighed before the first is differentiated. That is when they are copied
 * to the device, too. */
static tn_status launch(tn_fit *t, const tn_launched *step) {
  const int32_t *index = t->set.index, last = t->micro_batches - 1;
  if (last == 0) return tn_executor_run(t->executor, index[TN_PROGRAM_STEP], step->slots[0]);
  for (int32_t m = 0; m <= last; m++)
    TN_TRY(tn_executor_run(t->executor, index[TN_PROGRAM_WEIGH], step->slots[m]));
  for (int32_t m = 0; m < last; m++)
    TN_TRY(tn_executor_run_again(t->executor, index[TN_PROGRAM_MICRO], step->slots[m]));
  return tn_executor_run_again(t->executor, index[TN_PROGRAM_STEP], step->slots[last]);
}

tn_status tn_fit_step(tn_fit *t) {
  tn_launched *step = &t->ahead[t->n_ahead];
  TN_TRY(fetch(t, step));
  double factor = tn_lr_factor(&t->run->settings, t->progress.step, t->steps, t->steps_per_epoch);
  write_controls(t, step, factor);
  t->lr = t->step_controls.base_lr * factor;
  TN_TRY(launch(t, step));
  t->progress.step++;
  t->progress.batch++;
  t->progress.ended = false;
  step->event = tn_fit_event(t, TN_EVENT_STEP);
  t->n_ahead++;
  return catch_up(t, t->most_ahead);
}
