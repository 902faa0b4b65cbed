/* core/train/loop/position.c: the position of a run in its epochs, and the number of its steps. */
#include <stdio.h>

#include "core/records/runs/run_differences.h"
#include "core/train/loop/training.h"

/* The samples of an update with all micro-batches, over all devices. */
static int64_t position_update_samples(const tn_training *t) {
  const tn_settings *s = &t->run->settings;
  int64_t samples;
  bool large =
      __builtin_mul_overflow(s->data[TN_SPLIT_TRAIN].section.batch, s->optimizer.accumulate, &samples);
  return large ? INT64_MAX : samples;
}

static bool position_differs(const tn_training *t) { return t->sizes.schedule != NULL; }

/* The samples of a step, which lies between two points. */
static int64_t position_samples_at(const tn_training *t, int64_t step) {
  const tn_schedule_at at = {
      .points = t->sizes.points.v, .n_points = (int64_t)t->sizes.points.n, .samples = -1};
  const tn_schedule_point *p = tn_schedule_point_before(&at, TN_UNIT_STEPS, (double)step);
  return (int64_t)((p[1].samples - p->samples) / (double)(p[1].step - p->step) + 0.5);
}

tn_step_position tn_training_at(const tn_training *t, int64_t step) {
  tn_step_position at = {.step = step,
                         .steps = t->steps,
                         .steps_per_epoch = t->steps_per_epoch,
                         .samples = position_update_samples(t),
                         .state = t->progress.schedule};
  if (!position_differs(t)) return at;
  at.points = t->sizes.points.v;
  at.n_points = (int64_t)t->sizes.points.n;
  at.samples = position_samples_at(t, step);
  return at;
}

int32_t tn_training_next_batches(const tn_training *t) {
  return position_differs(t) ? (int32_t)tn_update_sizes_next(&t->sizes, &t->walk) : t->micro_batches;
}

/* ---- the steps of a run ---- */

/* A run with updates of another length than before has taken steps that do not count its epochs: those that
 * are left do. */
static int64_t position_count_steps(const tn_training *t) {
  const tn_progress *p = &t->progress;
  int64_t left, steps;
  if (__builtin_mul_overflow(t->run->settings.run.epochs - p->epoch, t->steps_per_epoch, &left) ||
      __builtin_add_overflow(left, p->step - p->batch, &steps))
    return INT64_MAX;
  return steps;
}

/* The batches of an epoch, and the most of an update. */
static void position_open_sizes(tn_training *t) {
  const tn_settings *s = &t->run->settings;
  tn_update_sizes *sizes = &t->sizes;
  sizes->schedule = tn_settings_schedule_of(s, TN_SCHEDULES_ACCUMULATE);
  if (!position_differs(t)) return;
  sizes->where = tn_settings_where(&t->run->ini, sizes->schedule->name, "type");
  sizes->most = s->optimizer.accumulate;
  sizes->epochs = s->run.epochs;
  sizes->batches = tn_feeder_updates(t->train);
  sizes->batch = s->data[TN_SPLIT_TRAIN].section.batch;
  sizes->pads = s->data[TN_SPLIT_TRAIN].section.last == TN_LAST_PAD;
}

void tn_training_count_epoch(tn_training *t) {
  t->steps_per_epoch = position_differs(t)
                           ? tn_update_sizes_walk(&t->sizes, t->progress.epoch, INT64_MAX, INT64_MAX).updates
                           : tn_feeder_updates(t->train);
}

static tn_status position_plan_sizes(tn_training *t, int64_t *steps) {
  const tn_progress *p = &t->progress;
  int64_t most = t->run->settings.run.max_steps;
  const tn_update_anchor anchor = {p->epoch, p->step - p->batch, most > 0 ? most : INT64_MAX};
  return tn_update_sizes_plan(&t->run->env, &t->sizes, &anchor, steps);
}

tn_status tn_training_plan_steps(tn_training *t) {
  const tn_run_section *run = &t->run->settings.run;
  int64_t steps, end = t->progress.step + 1;
  position_open_sizes(t);
  tn_training_count_epoch(t);
  steps = position_count_steps(t);
  if (position_differs(t)) TN_TRY(position_plan_sizes(t, &steps));
  if (run->max_steps > 0 && run->max_steps < steps) steps = run->max_steps;
  t->steps = run->fast_dev_run && steps > end ? end : steps;
  return TN_OK;
}

/* ---- a position of other updates ---- */

/* The whole updates of the present epoch within so many samples, and the samples of those. */
static int64_t position_updates(const tn_training *t, int64_t samples, int64_t *whole) {
  if (position_differs(t)) {
    tn_update_walk walk =
        tn_update_sizes_walk(&t->sizes, t->progress.epoch, INT64_MAX, samples / t->sizes.batch);
    *whole = walk.batches * t->sizes.batch;
    return walk.updates;
  }
  int64_t one = position_update_samples(t), n = samples / one;
  if (n > t->steps_per_epoch) n = t->steps_per_epoch;
  *whole = n * one;
  return n;
}

int64_t tn_training_epoch_samples(const tn_training *t) {
  int64_t n = t->progress.batch, samples;
  if (position_differs(t))
    return tn_update_sizes_walk(&t->sizes, t->progress.epoch, n, INT64_MAX).batches * t->sizes.batch;
  return __builtin_mul_overflow(n, position_update_samples(t), &samples) ? INT64_MAX : samples;
}

/* `seen` samples of the epoch were taken; it goes on behind `whole` of them. */
static tn_status position_remark(const tn_training *t, int64_t seen, int64_t whole) {
  const tn_progress *p = &t->progress;
  if (p->batch >= t->steps_per_epoch)
    return tn_run_remark(t->run, "epoch %lld has no samples left: it had taken %lld", (long long)p->epoch + 1,
                         (long long)seen);
  char twice[64] = "";
  if (seen > whole)
    snprintf(twice, sizeof twice, "; %lld samples come a second time", (long long)(seen - whole));
  return tn_run_remark(t->run, "epoch %lld goes on at update %lld of %lld, behind %lld of its samples%s",
                       (long long)p->epoch + 1, (long long)p->batch + 1, (long long)t->steps_per_epoch,
                       (long long)whole, twice);
}

tn_status tn_training_move_position(tn_training *t, bool remark) {
  tn_progress *p = &t->progress;
  int64_t before = p->batch, seen = p->epoch_samples >= 0 ? p->epoch_samples : tn_training_epoch_samples(t),
          whole;
  if (before == 0) return TN_OK;
  tn_training_count_epoch(t);
  p->batch = position_updates(t, seen, &whole);
  return (p->batch == before && whole == seen) || !remark ? TN_OK : position_remark(t, seen, whole);
}
