/* tenon/plugin/schedule.h: a schedule: a factor of an option for each step: of the optimizer's lr in
 * [schedule], of another option in [schedule.OPTION]. The host multiplies it with warm-up (`warmup`).
 *
 * Life cycle: check when a configuration is read -> factor, a pure function, on the launching thread once for
 * each step; epoch, on the same thread after the validation of each complete epoch. */
#ifndef TENON_PLUGIN_SCHEDULE_H
#define TENON_PLUGIN_SCHEDULE_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* A point in a run. Steps are optimizer steps, counted from 0. */
typedef struct tn_schedule_at {
  uint32_t struct_size;
  int64_t step, steps;     /* this step; number of steps in the run, -1: unknown */
  int64_t steps_per_epoch; /* -1: unknown */
  int64_t warmup;          /* steps of warm-up that the host applies */
  const double *state;     /* TN_SCHEDULE_STATE numbers that `epoch` has changed; zeros at first */
  int64_t samples;         /* of a step, over all ranks and micro-batches; -1: unknown */
} tn_schedule_at;

/* Units of time: values of an option `unit`, "epochs|steps|samples". */
enum { TN_UNIT_EPOCHS = 0, TN_UNIT_STEPS = 1, TN_UNIT_SAMPLES = 2 };

/* How many units the first `steps` steps of a run last; -1 where the length of an epoch is unknown. */
static inline double tn_schedule_units(const tn_schedule_at *at, int64_t steps, int32_t unit) {
  if (unit == TN_UNIT_STEPS) return (double)steps;
  if (unit == TN_UNIT_SAMPLES) return at->samples > 0 ? (double)steps * (double)at->samples : -1.0;
  return at->steps_per_epoch > 0 ? (double)steps / (double)at->steps_per_epoch : -1.0;
}

/* The number of steps that so many units last, rounded up; -1 where the length of an epoch is unknown. The
 * greatest number stands for those that are greater. */
static inline int64_t tn_schedule_steps(const tn_schedule_at *at, int64_t units, int32_t unit) {
  if (unit == TN_UNIT_STEPS) return units;
  if (unit == TN_UNIT_SAMPLES) return at->samples > 0 ? units / at->samples + (units % at->samples > 0) : -1;
  if (at->steps_per_epoch <= 0) return -1;
  return units <= INT64_MAX / at->steps_per_epoch ? units * at->steps_per_epoch : INT64_MAX;
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
