/* tenon/plugin/schedule.h: the learning rate over time, as a factor of the optimizer's lr. Linear
 * warm-up (`warmup` in [schedule]) is the host's and multiplies every schedule.
 *
 * Life cycle: factor is a pure function, called on the launching thread once per step. */
#ifndef TENON_PLUGIN_SCHEDULE_H
#define TENON_PLUGIN_SCHEDULE_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* Where a run stands. Steps are optimizer steps, counted from 0. */
typedef struct tn_schedule_at {
  uint32_t struct_size;
  int64_t step, steps;     /* this one, and in the whole run; steps is -1 when not known */
  int64_t steps_per_epoch; /* -1 when not known */
  int64_t warmup;          /* steps of warm-up that the host applies */
} tn_schedule_at;

typedef struct tn_schedule {
  tn_item item;
  double (*factor)(const void *options, const tn_schedule_at *at);
} tn_schedule;

TN_END_C
#endif
