/* tenon/plugin/schedule.h: a schedule: a factor of the optimizer's lr for each step. The host multiplies it
 * with linear warm-up (`warmup` in [schedule]).
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
} tn_schedule_at;

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
