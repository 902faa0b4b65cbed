/* core/step/values/schedule_values.h: the values of schedules at a step. */
#pragma once

#include "core/run/settings/settings.h"

/* A step in its run. */
typedef struct tn_step_position {
  int64_t step, steps;     /* counted from 0; in the run, -1: unknown */
  int64_t steps_per_epoch; /* -1: unknown */
  int64_t samples;         /* of a step; -1: unknown */
  const double *state;     /* of [schedule]: TN_SCHEDULE_STATE numbers */
  bool plain;              /* values are as configured, without schedules */
  /* Where steps differ, [schedule.accumulate] (tenon/plugin/schedule.h); NULL: all steps are alike. */
  const tn_schedule_point *points;
  int64_t n_points;
} tn_step_position;

/* How many units, TN_UNIT_..., are over before a step; and the first step before which so many are. */
double tn_position_units(const tn_step_position *at, int32_t unit);
int64_t tn_position_steps(const tn_step_position *at, int64_t units, int32_t unit);
/* The steps of a schedule's warm-up; 0 where the length of an epoch is unknown and is its unit. */
int64_t tn_schedule_warmup_steps(const tn_schedule_setting *schedule, const tn_step_position *at);
/* Warm-up times schedule; 1 without a schedule (NULL), and where the values are as configured. */
double tn_schedule_factor(const tn_schedule_setting *schedule, const tn_step_position *at);
/* Writes the values of a step into the options of transforms. None of them runs meanwhile. */
void tn_schedules_move_transforms(const tn_settings *settings, const tn_step_position *at);
/* The value of an option that is configured as `value`: `value` where the factor is 1, [schedule] toward
 * where it is 0. */
double tn_schedule_value(const tn_schedule_setting *schedule, double value, const tn_step_position *at);
