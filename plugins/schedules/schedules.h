/* plugins/schedules/schedules.h: the schedules of this plugin, and what they share. */
#pragma once

#include "tenon/plugin/schedule.h"

/* The part of a schedule that is over, 0 to 1, from the end of the warm-up to `length` steps, or to the end
 * of the run if `length` is 0. 0 where the run has no known end, or warms up until then. */
double schedule_done(const tn_schedule_at *at, int64_t length);
/* Half a cosine from `from` at done = 0 to `to` at done = 1. */
double schedule_cosine(double from, double to, double done);

/* The option `unit`: what counts as one, TN_UNIT_... */
#define SCHEDULE_UNIT(S, doc) TN_OPT(S, unit, TN_OPT_ENUM, "epochs", "epochs|steps|samples", doc)
/* Fails unless the list ascends. */
tn_status schedule_check_milestones(tn_env *env, const tn_ints *milestones);
