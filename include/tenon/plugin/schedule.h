/* tenon/plugin/schedule.h: a schedule: a factor of an option for each step: of the optimizer's lr in
 * [schedule], of another option in [schedule.OPTION]. The host multiplies it with warm-up (`warmup`).
 *
 * Life cycle: check when a configuration is read -> factor, a pure function, on the launching thread once for
 * each step; epoch, on the same thread after the validation of each complete epoch. */
#ifndef TENON_PLUGIN_SCHEDULE_H
#define TENON_PLUGIN_SCHEDULE_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* Where a run whose updates differ in their samples stands before step `step`: the epochs and samples that
 * are over. All steps between two points are alike. Frozen: tn_schedule_at has arrays of them. */
typedef struct tn_schedule_point {
  int64_t step;
  double epochs, samples;
} tn_schedule_point;

/* A moment in a run. Steps are optimizer steps, counted from 0. */
typedef struct tn_schedule_at {
  uint32_t struct_size;
  int64_t step, steps;     /* this step; number of steps in the run, -1: unknown */
  int64_t steps_per_epoch; /* -1: unknown */
  int64_t warmup;          /* steps of warm-up that the host applies */
  const double *state;     /* TN_SCHEDULE_STATE numbers that `epoch` has changed; zeros at first */
  int64_t samples;         /* of a step, over all ranks and micro-batches; -1: unknown */
  /* With [schedule.accumulate] steps differ: at least two points in ascending order, from the first step of
   * the run to its end. tn_schedule_units and tn_schedule_steps read them. NULL: all steps are alike. */
  const tn_schedule_point *points;
  int64_t n_points;
  int64_t origin; /* the step of the points that is step 0 here: not 0 in a part of `sequential` */
} tn_schedule_at;

/* Units of time: values of an option `unit`, "epochs|steps|samples". */
enum { TN_UNIT_EPOCHS = 0, TN_UNIT_STEPS = 1, TN_UNIT_SAMPLES = 2 };

/* The point before a step, or before a number of epochs or samples (unit, amount), and not the last one. */
static inline const tn_schedule_point *tn_schedule_point_before(const tn_schedule_at *at, int32_t unit,
                                                                double amount) {
  int64_t low = 0, high = at->n_points - 2;
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    const tn_schedule_point *p = &at->points[middle];
    double value = unit == TN_UNIT_STEPS ? (double)p->step : unit == TN_UNIT_SAMPLES ? p->samples : p->epochs;
    if (value <= amount)
      low = middle;
    else
      high = middle - 1;
  }
  return &at->points[low];
}

/* The epochs or samples that are over before a step of the points. */
static inline double tn_schedule_over(const tn_schedule_at *at, int64_t step, int32_t unit) {
  const tn_schedule_point *p = tn_schedule_point_before(at, TN_UNIT_STEPS, (double)step), *q = p + 1;
  double from = unit == TN_UNIT_SAMPLES ? p->samples : p->epochs,
         to = unit == TN_UNIT_SAMPLES ? q->samples : q->epochs;
  if (step == q->step) return to;
  return from + (to - from) / (double)(q->step - p->step) * (double)(step - p->step);
}

/* The first step of the points before which so many epochs or samples are over. */
static inline int64_t tn_schedule_step_of(const tn_schedule_at *at, double amount, int32_t unit) {
  const tn_schedule_point *p = tn_schedule_point_before(at, unit, amount), *q = p + 1;
  double from = unit == TN_UNIT_SAMPLES ? p->samples : p->epochs,
         to = unit == TN_UNIT_SAMPLES ? q->samples : q->epochs, rounding = 1e-9;
  double steps = (amount - from) / (to - from) * (double)(q->step - p->step) - rounding;
  if (steps >= 9e18 - (double)p->step) return INT64_MAX;
  int64_t whole = steps > 0 ? (int64_t)steps : 0;
  return p->step + whole + ((double)whole < steps);
}

/* How many units the first `steps` steps of a run last; -1 where the length of an epoch is unknown. */
static inline double tn_schedule_units(const tn_schedule_at *at, int64_t steps, int32_t unit) {
  if (unit == TN_UNIT_STEPS) return (double)steps;
  if (at->points)
    return tn_schedule_over(at, at->origin + steps, unit) - tn_schedule_over(at, at->origin, unit);
  if (unit == TN_UNIT_SAMPLES) return at->samples > 0 ? (double)steps * (double)at->samples : -1.0;
  return at->steps_per_epoch > 0 ? (double)steps / (double)at->steps_per_epoch : -1.0;
}

/* The number of steps that so many units last, rounded up; -1 where the length of an epoch is unknown. The
 * greatest number stands for those that are greater. */
static inline int64_t tn_schedule_steps(const tn_schedule_at *at, int64_t units, int32_t unit) {
  if (unit == TN_UNIT_STEPS) return units;
  if (at->points) {
    double from = tn_schedule_over(at, at->origin, unit);
    int64_t step = tn_schedule_step_of(at, from + (double)units, unit);
    return step == INT64_MAX ? step : step - at->origin;
  }
  if (unit == TN_UNIT_SAMPLES) return at->samples > 0 ? units / at->samples + (units % at->samples > 0) : -1;
  if (at->steps_per_epoch <= 0) return -1;
  return units <= INT64_MAX / at->steps_per_epoch ? units * at->steps_per_epoch : INT64_MAX;
}

/* How many units lie between two steps. */
static inline double tn_schedule_units_between(const tn_schedule_at *at, int64_t from, int64_t to,
                                               int32_t unit) {
  if (!at->points) return tn_schedule_units(at, to - from, unit);
  return tn_schedule_units(at, to, unit) - tn_schedule_units(at, from, unit);
}

/* Numbers that a schedule keeps from epoch to epoch. The host saves them in checkpoints. */
enum { TN_SCHEDULE_STATE = 8 };

/* The result of an epoch: the value of [schedule] metric over the validation data, or over the training data
 * without validation. It is finite: in place of a NaN or an infinity it is the worst finite number. */
typedef struct tn_schedule_result {
  uint32_t struct_size;
  int32_t larger_is_better; /* 0: the value is a loss */
  int64_t epoch;            /* counted from 0 */
  double value;
} tn_schedule_result;

typedef struct tn_schedule {
  tn_item item;
  double (*factor)(const void *options, const tn_schedule_at *at);
  /* NULL, or refuses options that contradict each other (TN_EINVAL, by tn_fail). */
  tn_status (*check)(tn_env *env, const void *options);
  /* NULL, or changes the state by the result of an epoch. A function of its arguments alone, called with
   * equal arguments on every rank. A session has no epochs: its state stays zero. */
  void (*epoch)(const void *options, const tn_schedule_result *result, double *state);
  const char *example; /* for the reference: lines of [schedule] behind `type`; NULL: none */
} tn_schedule;

TN_END_C
#endif
