/* core/train/loop/position.c: the position of a run in its epochs, and the number of its steps. */
#include <stdio.h>

#include "core/records/runs/run_differences.h"
#include "core/train/loop/training.h"

int64_t tn_training_update_samples(const tn_training *t) {
  const tn_settings *s = &t->run->settings;
  int64_t samples;
  bool large =
      __builtin_mul_overflow(s->data[TN_SPLIT_TRAIN].section.batch, s->optimizer.accumulate, &samples);
  return large ? INT64_MAX : samples;
}

tn_step_position tn_training_at(const tn_training *t, int64_t step) {
  return (tn_step_position){.step = step,
                            .steps = t->steps,
                            .steps_per_epoch = t->steps_per_epoch,
                            .samples = tn_training_update_samples(t),
                            .state = t->progress.schedule};
}

/* A run with updates of another length than before has taken steps that do not count its epochs: those that
 * are left do. */
int64_t tn_training_count_steps(const tn_training *t) {
  const tn_run_section *run = &t->run->settings.run;
  const tn_progress *p = &t->progress;
  int64_t left, steps, end = p->step + 1;
  if (__builtin_mul_overflow(run->epochs - p->epoch, t->steps_per_epoch, &left) ||
      __builtin_add_overflow(left, p->step - p->batch, &steps))
    steps = INT64_MAX;
  if (run->max_steps > 0 && run->max_steps < steps) steps = run->max_steps;
  return run->fast_dev_run && steps > end ? end : steps;
}

static tn_status position_remark(tn_training *t, int64_t before, int64_t then, int64_t now) {
  const tn_progress *p = &t->progress;
  int64_t seen = before * then, again = seen - p->batch * now;
  if (p->batch >= t->steps_per_epoch)
    return tn_run_remark(t->run, "epoch %lld has no samples left: it had taken %lld", (long long)p->epoch + 1,
                         (long long)seen);
  char twice[64] = "";
  if (again > 0) snprintf(twice, sizeof twice, "; %lld samples come a second time", (long long)again);
  return tn_run_remark(t->run, "epoch %lld goes on at update %lld of %lld, behind %lld of its samples%s",
                       (long long)p->epoch + 1, (long long)p->batch + 1, (long long)t->steps_per_epoch,
                       (long long)(p->batch * now), twice);
}

tn_status tn_training_move_position(tn_training *t, bool remark) {
  tn_progress *p = &t->progress;
  int64_t before = p->batch, now = tn_training_update_samples(t),
          then = p->update_samples > 0 ? p->update_samples : now, samples;
  if (before == 0 || (then == now && before <= t->steps_per_epoch)) return TN_OK;
  if (__builtin_mul_overflow(before, then, &samples)) samples = INT64_MAX;
  p->batch = samples / now;
  if (p->batch > t->steps_per_epoch) p->batch = t->steps_per_epoch;
  return remark ? position_remark(t, before, then, now) : TN_OK;
}

tn_status tn_training_begin_epoch(tn_training *t) {
  bool ended = t->progress.batch >= t->steps_per_epoch;
  if (t->progress.step > 0 && !ended) return TN_OK;
  if (ended && t->progress.step > 0) {
    t->progress.epoch++;
    t->progress.batch = 0;
  }
  TN_TRY(tn_feeder_stop(t->train));
  return tn_feeder_start(t->train, t->progress.epoch, t->progress.batch);
}
