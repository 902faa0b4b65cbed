/* plugins/schedules/schedules.h: the schedules of this plugin, and what they share. */
#pragma once

#include "tenon/plugin/schedule.h"

/* The part of a schedule that is over, 0 to 1, from the end of the warm-up to `length` steps, or to the end
 * of the run if `length` is 0. 0 where the run has no known end, or warms up until then. */
double schedule_done(const tn_schedule_at *at, int64_t length);
/* Half a cosine from `from` at done = 0 to `to` at done = 1. */
double schedule_cosine(double from, double to, double done);

/* The option `unit`: what counts as one. */
enum { SCHEDULE_EPOCHS = 0, SCHEDULE_STEPS = 1 };
#define SCHEDULE_UNIT(S, doc) TN_OPT(S, unit, TN_OPT_ENUM, "epochs", "epochs|steps", doc)
/* Steps in a unit; 0 where the length of an epoch is unknown. */
int64_t schedule_unit_steps(const tn_schedule_at *at, int32_t unit);
