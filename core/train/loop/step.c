/* core/train/loop/step.c: launches updates, and reads their results when they have ended. An update has one
 * batch, or the micro-batches of [optimizer] accumulate. */
#include <math.h>

#include "core/base/system/system.h"
#include "core/exec/device/range.h"
#include "core/train/loop/training.h"

static void step_update_rate(tn_training *t, int64_t samples) {
  double now = tn_clock_s(), took = now - t->rate_s;
  if (t->rate_s > 0 && took > 0) {
    double rate = (double)samples / took;
    t->samples_per_s = t->samples_per_s > 0 ? 0.9 * t->samples_per_s + 0.1 * rate : rate;
  }
  t->rate_s = now;
}

/* ---- phases of a step ---- */

/* The phases that a step consists of are first to last; one that is not due rests. */
static int32_t step_first_phase(const tn_training *t) { return t->run->settings.n_turns > 0 ? 0 : t->phase; }

static int32_t step_end_phase(const tn_training *t) {
  return t->run->settings.n_turns > 0 ? t->run->settings.n_turns : t->phase + 1;
}

/* Whether a phase takes its turn in a step, counted from 1. */
static bool step_has_phase(const tn_training *t, int32_t phase, int64_t step) {
  const tn_settings *s = &t->run->settings;
  return s->n_turns == 0 || tn_turn_is_due(&s->turns[phase], step);
}

/* Whether a step, counted from 1, is one of [run] watch. */
static bool step_is_watched(const tn_training *t, int64_t step) {
  int64_t every = t->run->settings.run.watch;
  return every > 0 && step % every == 0;
}

/* ---- numbers of a step that has ended ---- */

/* Of the programs of a step but those of [run] watch: those of its length or size, or of the phase. */
static const tn_phase_slots *step_programs(const tn_training *t, const tn_launched_step *step,
                                           int32_t phase) {
  bool shorter = step->length < t->run->settings.n_lengths - 1;
  return shorter ? &t->shorter[step->length] : &t->phases[phase];
}

/* Of the program that has made a step. */
static const tn_phase_slots *step_program(const tn_training *t, const tn_launched_step *step, int32_t phase) {
  return step_is_watched(t, step->event.step) ? &t->watch[phase].slots : step_programs(t, step, phase);
}

/* Reads whether the update was applied, and the scale of the loss; of several phases, whether one of them was
 * skipped, and the scale of the last one. */
static void step_read_update(tn_training *t, tn_event *event, const tn_launched_step *step) {
  int32_t slot = step->slots[step->n - 1];
  event->loss_scale = 0.0;
  event->skipped = -1;
  for (int32_t phase = step_first_phase(t); phase < step_end_phase(t); phase++) {
    const tn_measure_outputs *outputs = &step_program(t, step, phase)->step_outputs;
    const float *skipped = outputs->skipped[slot], *scale = outputs->loss_scale[slot];
    if (!step_has_phase(t, phase, event->step)) continue;
    event->loss_scale = scale ? (double)*scale : 0.0;
    if (skipped && event->skipped <= 0) event->skipped = *skipped != 0.0f;
  }
  t->epoch_sums.skipped += event->skipped > 0;
}

/* With a scaled loss, a skipped step with a loss that is not finite is lost: the run goes on with a smaller
 * scale. */
static bool step_is_lost(const tn_event *event) {
  return !isfinite(event->train[0].value) && event->loss_scale != 0.0 && event->skipped > 0;
}

/* Any other loss that is not finite ends the run. So does the TN_MAX_LOST_STEPS-th lost step in a row. */
static tn_status step_check_loss(tn_training *t, const tn_event *event) {
  double loss = event->train[0].value;
  t->failed_step = event->step;
  t->lost_steps_in_a_row = step_is_lost(event) ? t->lost_steps_in_a_row + 1 : 0;
  if (t->lost_steps_in_a_row >= TN_MAX_LOST_STEPS)
    return tn_failf(&t->run->env, TN_ENONFINITE,
                    "the loss is %s at step %lld, as in the %d steps before, which were skipped",
                    tn_training_nonfinite_text(loss), (long long)event->step, TN_MAX_LOST_STEPS - 1);
  if (isfinite(loss) || t->lost_steps_in_a_row > 0) return TN_OK;
  return tn_failf(&t->run->env, TN_ENONFINITE, "the loss is %s at step %lld",
                  tn_training_nonfinite_text(loss), (long long)event->step);
}

/* Adds the sums of all micro-batches of the phases that have had their turn. */
static void step_add_sums(const tn_training *t, const tn_launched_step *step, tn_metric_sums *sums) {
  int32_t last = step->n - 1;
  for (int32_t phase = step_first_phase(t); phase < step_end_phase(t); phase++) {
    if (!step_has_phase(t, phase, step->event.step)) continue;
    for (int32_t m = 0; m < last; m++)
      tn_metric_sums_add_batch(sums, &step_programs(t, step, phase)->micro_outputs, step->slots[m]);
    tn_metric_sums_add_batch(sums, &step_program(t, step, phase)->step_outputs, step->slots[last]);
  }
  tn_metric_sums_count(sums, step->samples);
}

/* The losses of a phase that rests stay those of its last turn. */
static void step_reset_sums(tn_training *t, int64_t step) {
  const tn_settings *s = &t->run->settings;
  if (s->n_turns == 0) tn_metric_sums_reset(&t->step_sums);
  for (int32_t i = 0; i < s->n_turns; i++)
    if (tn_turn_is_due(&s->turns[i], step)) tn_metric_sums_reset_phase(&t->step_sums, s->turns[i].name);
}

static tn_status step_wait(tn_training *t, const tn_launched_step *step) {
  double start = tn_clock_s();
  tn_status status = TN_OK;
  tn_range_begin(t->device, "wait for a step");
  for (int32_t m = 0; m < step->n && status == TN_OK; m++)
    status = tn_executor_slot_wait(t->executor, step->slots[m]);
  tn_range_end(t->device);
  if (status == TN_OK) tn_step_profile_host(t->profiling.taken, TN_SPAN_WAIT_STEP, start, 0);
  return status;
}

static tn_status step_return_slots(tn_training *t, const tn_launched_step *step) {
  for (int32_t m = 0; m < step->n; m++) TN_TRY(tn_feeder_return(t->train, step->slots[m]));
  return TN_OK;
}

/* Posts what a watched step shows of each phase. */
static void step_post_watch(tn_training *t, const tn_launched_step *step) {
  int32_t slot = step->slots[step->n - 1];
  for (int32_t phase = step_first_phase(t); phase < step_end_phase(t); phase++) {
    tn_watch_values *w = &t->watch[phase].values;
    const float *skipped = t->watch[phase].slots.step_outputs.skipped[slot];
    tn_event event = step->event;
    if (!step_has_phase(t, phase, event.step)) continue;
    tn_watch_values_read(w, slot, skipped != NULL && *skipped != 0.0f);
    event.kind = TN_EVENT_WATCH;
    event.watched = w->metrics;
    event.n_watched = w->n_metrics;
    event.histograms = w->histograms;
    event.n_histograms = w->n_histograms;
    tn_observers_post(t->observers, &event);
  }
}

/* Waits for a step, reads its sums, posts its event, and checks the loss. */
static tn_status step_read(tn_training *t, tn_launched_step *step) {
  TN_TRY(step_wait(t, step));
  step_reset_sums(t, step->event.step);
  step_add_sums(t, step, &t->step_sums);
  step_update_rate(t, step->samples);
  if (t->first_step_s == 0) t->first_step_s = tn_clock_s() - t->run->opened_s;
  tn_event *event = &step->event;
  event->seconds = tn_clock_s() - t->started_s;
  event->samples_per_s = t->samples_per_s;
  event->train = tn_metric_sums_means(&t->step_sums);
  event->n_train = t->step_sums.n_means;
  step_read_update(t, event, step);
  /* a lost step would make the means of the epoch NaN */
  if (!step_is_lost(event)) step_add_sums(t, step, &t->epoch_sums);
  tn_observers_post(t->observers, event);
  if (t->observers != NULL && step_is_watched(t, event->step)) step_post_watch(t, step);
  TN_TRY(step_check_loss(t, event));
  return step_return_slots(t, step);
}

/* Reads the oldest steps until at most `most` are unread. */
static tn_status step_read_oldest(tn_training *t, int32_t most) {
  while (t->n_ahead > most) {
    tn_launched_step step = t->ahead[0];
    t->n_ahead--;
    for (int32_t i = 0; i < t->n_ahead; i++) t->ahead[i] = t->ahead[i + 1];
    t->ahead[t->n_ahead].slots = step.slots; /* the next step reuses this array */
    TN_TRY(step_read(t, &step));
  }
  return TN_OK;
}

tn_status tn_training_read_steps(tn_training *t) {
  TN_TRY(step_read_oldest(t, 0));
  return tn_training_pause_profile(t);
}

/* ---- launching ---- */

/* An epoch has whole updates, so TN_EOF comes before the first batch of one. */
static tn_status step_fetch_batches(tn_training *t, tn_launched_step *step) {
  double start = tn_clock_s();
  tn_status status = TN_OK;
  step->samples = 0;
  step->n = tn_training_next_batches(t);
  if (step->n == 0) return TN_EOF;
  tn_range_begin(t->device, "wait for samples");
  tn_flight_wait before = tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "its next batch");
  for (int32_t m = 0; m < step->n && status == TN_OK; m++) {
    int64_t samples = 0;
    status = tn_feeder_next(t->train, &step->slots[m], &samples);
    step->samples += samples;
  }
  step->length = t->run->settings.sizes ? t->size : tn_feeder_length(t->train);
  tn_flight_end_wait(t->device->flight, &before);
  tn_range_end(t->device);
  if (status == TN_OK) tn_step_profile_host(t->profiling.taken, TN_SPAN_WAIT_BATCH, start, 0);
  return status;
}

/* Micro-batch m of a rank is block m * ranks + rank of the global batch. */
static void step_write_control_block(const tn_training *t, const tn_control_block *c,
                                     const tn_launched_step *step, const tn_step_position *at) {
  for (int32_t m = 0; m < step->n; m++)
    tn_control_block_write(c, step->slots[m], (int64_t)m * tn_run_ranks(t->run) + t->run->rank, at);
}

static void step_write_control_blocks(tn_training *t, const tn_launched_step *step,
                                      const tn_step_position *at) {
  bool several = t->micro_batches > 1;
  if (several) step_write_control_block(t, &t->weigh_block, step, at);
  for (int32_t phase = step_first_phase(t); phase < step_end_phase(t); phase++) {
    step_write_control_block(t, &step_program(t, step, phase)->step_block, step, at);
    if (several) step_write_control_block(t, &step_programs(t, step, phase)->micro_block, step, at);
  }
}

/* STEP or MICRO of the step: of its length or size, or of the phase. */
static int32_t step_index(const tn_training *t, const tn_launched_step *step, int32_t which, int32_t phase) {
  const tn_settings *s = &t->run->settings;
  bool shorter = step->length < s->n_lengths - 1;
  return t->set.index[shorter ? tn_length_program(s, which, step->length) : tn_phase_program(which, phase)];
}

/* The update of one phase. `again`: the inputs of the slots are on the device. */
static tn_status step_launch_phase(tn_training *t, const tn_launched_step *step, int32_t phase, bool again) {
  int32_t last = step->n - 1, update = step_index(t, step, TN_PROGRAM_STEP, phase);
  if (step_is_watched(t, step->event.step)) update = t->set.index[tn_phase_program(TN_PROGRAM_WATCH, phase)];
  for (int32_t m = 0; m < last; m++)
    TN_TRY(tn_executor_run_again(t->executor, step_index(t, step, TN_PROGRAM_MICRO, phase), step->slots[m]));
  return (again ? tn_executor_run_again : tn_executor_run)(t->executor, update, step->slots[last]);
}

/* With several micro-batches, the weigh program copies all of them to the device first; the others reuse the
 * copies, and so does each phase after the first one. */
static tn_status step_launch(tn_training *t, const tn_launched_step *step) {
  bool several = t->micro_batches > 1, again = several;
  for (int32_t m = 0; m < step->n && several; m++)
    TN_TRY(tn_executor_run(t->executor, t->set.index[TN_PROGRAM_WEIGH], step->slots[m]));
  for (int32_t phase = step_first_phase(t); phase < step_end_phase(t); phase++) {
    if (!step_has_phase(t, phase, step->event.step)) continue;
    TN_TRY(step_launch_phase(t, step, phase, again));
    again = true;
  }
  return TN_OK;
}

/* The steps of the next launch: one where fewer are left before the end of the epoch or of the run, or before
 * the next checkpoint; one until the profile is over; and a watched step by itself. */
static int32_t step_count_next(const tn_training *t) {
  if (!t->profiling.over) return 1;
  int64_t left = t->steps_per_epoch - t->progress.batch, save = t->run->settings.run.save_every,
          watch = t->run->settings.run.watch;
  if (watch > 0 && watch - t->progress.step % watch - 1 < left) left = watch - t->progress.step % watch - 1;
  if (t->steps - t->progress.step < left) left = t->steps - t->progress.step;
  if (save > 0 && save - t->progress.step % save < left) left = save - t->progress.step % save;
  int64_t prune = tn_training_next_prune(t, t->progress.step + 1) - t->progress.step;
  if (prune < left) left = prune;
  return left < t->steps_per_launch ? 1 : t->steps_per_launch;
}

/* Fetches the batches of the next step and writes its control values. */
static tn_status step_prepare(tn_training *t, tn_launched_step *step) {
  TN_TRY(step_fetch_batches(t, step));
  const tn_step_position at = tn_training_at(t, t->progress.step);
  t->lr = tn_control_block_lr(&t->step_block, &at);
  t->progress.step++;
  t->progress.batch++;
  if (t->sizes.schedule != NULL) tn_update_sizes_step(&t->sizes, &t->walk);
  t->progress.ended = false;
  tn_flight_step(t->device->flight, t->progress.step);
  step->event = tn_training_event(t, TN_EVENT_STEP);
  if (t->sizes.schedule != NULL) step->event.samples = step->samples;
  step_write_control_blocks(t, step, &at);
  return TN_OK;
}

/* Launches n steps together where their slots are neighbours and the first one begins a group of slots. */
static tn_status step_launch_all(tn_training *t, const tn_launched_step *steps, int32_t n) {
  int32_t first = steps[0].slots[0], index = t->set.index[tn_phase_program(TN_PROGRAM_STEP, t->phase)];
  bool together = n == t->steps_per_launch && first % n == 0;
  for (int32_t i = 1; i < n; i++) together = together && steps[i].slots[0] == first + i;
  if (n > 1 && together) return tn_executor_run_several(t->executor, index, first, n);
  for (int32_t i = 0; i < n; i++) TN_TRY(step_launch(t, &steps[i]));
  return TN_OK;
}

void tn_training_enter_phase(tn_training *t, int64_t epoch) {
  t->phase = tn_settings_phase(&t->run->settings, epoch);
  const tn_phase_slots *now = &t->phases[t->phase];
  t->step_block = now->step_block;
  t->micro_block = now->micro_block;
  t->step_outputs = now->step_outputs;
  t->micro_outputs = now->micro_outputs;
}

/* A batch that cannot be read ends the run after the steps before it. */
static tn_status step_run_next(tn_training *t, int64_t *samples) {
  tn_launched_step *steps = &t->ahead[t->n_ahead];
  int32_t most = step_count_next(t), n = 1;
  tn_training_enter_phase(t, t->progress.epoch + 1);
  *samples = 0;
  TN_TRY(step_prepare(t, &steps[0]));
  if (steps[0].slots[0] % most != 0) most = 1;
  tn_status prepared = TN_OK;
  while (n < most && (prepared = step_prepare(t, &steps[n])) == TN_OK) n++;
  if (prepared != TN_OK) t->steps_per_launch = 1;
  TN_TRY(step_launch_all(t, steps, n));
  t->n_ahead += n;
  for (int32_t i = 0; i < n; i++) *samples += steps[i].samples;
  if (prepared == TN_OK) return step_read_oldest(t, t->max_ahead);
  return prepared;
}

/* No step is under way where the profile begins, and none where it ends. */
static tn_status step_run_profiled(tn_training *t) {
  tn_step_profile *profile = t->profiling.taken;
  int64_t samples;
  if (!tn_step_profile_runs(profile)) {
    TN_TRY(step_read_oldest(t, 0));
    TN_TRY(tn_step_profile_resume(profile));
  }
  double start = tn_clock_s();
  TN_TRY(step_run_next(t, &samples));
  bool last = tn_training_count_profiled(t, samples);
  if (last) TN_TRY(step_read_oldest(t, 0));
  tn_step_profile_host(profile, TN_SPAN_STEP, start, t->progress.step);
  return last ? tn_training_end_profile(t) : TN_OK;
}

tn_status tn_training_step(tn_training *t) {
  int64_t samples, before = t->progress.step;
  tn_training_time_step(t);
  TN_TRY(tn_training_profile_is_due(t) ? step_run_profiled(t) : step_run_next(t, &samples));
  return tn_training_timed_step(t, t->progress.step - before);
}
