/* tenon/plugin/schedule.h: a schedule: a factor of the optimizer's lr for each step. The host multiplies it
 * with linear warm-up (`warmup` in [schedule]).
 *
 * Life cycle: check when a configuration is read -> factor, a pure function, on the launching thread once for
 * each step. */
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
} tn_schedule_at;

typedef struct tn_schedule {
  tn_item item;
  double (*factor)(const void *options, const tn_schedule_at *at);
  /* NULL, or refuses options that contradict each other (TN_EINVAL, by tn_fail). */
  tn_status (*check)(tn_env *env, const void *options);
} tn_schedule;

TN_END_C
#endif
