/* core/step/update/averages.h: averages of parameters and running statistics: [optimizer] ema and swa_from
 * (docs/decisions/0052-averages-of-weights.md).
 *
 * The average of a state "PATH" is the state "PATH.average", whose kind is that of optimizer state. Averages
 * of trained parameters lie in regions of their own, parallel to those of the parameters, so that with `ema`
 * they are part of the update's launch. Programs without an update read averages in place of the states. */
#pragma once

#include "core/compile/state_map.h"
#include "core/run/settings/settings.h"

/* The epochs in the mean, and the number that it shall have: i64 scalars. The host writes TN_AVERAGE_GOAL
 * before it runs the graph of tn_mean_graph. */
#define TN_AVERAGE_COUNT "run.averaged"
#define TN_AVERAGE_GOAL  "run.averaged.goal"
/* The decay of the next update, an f32 scalar. */
#define TN_AVERAGE_DECAY "run.averaged.decay"

/* Whether the host averages, by one of the two keys; and whether there are averages, also those that the
 * optimizer has as a state of its own. */
static inline bool tn_settings_take_average(const tn_settings *s) {
  return s->optimizer.ema > 0 || s->optimizer.swa_from > 0;
}
static inline bool tn_settings_average(const tn_settings *s) {
  return tn_settings_take_average(s) || tn_optimizer_has_average(s->optimizer_kind);
}

/* Sets *average to the average of a state, or NULL if it has none. TN_ENOMEM: out of memory. */
tn_status tn_average_of(const tn_state_map *map, const tn_placement *state, const tn_placement **average);
/* Sets *state to the state whose average this is, or NULL if it is no average. */
tn_status tn_averaged_state(const tn_state_map *map, const tn_placement *average, const tn_placement **state);

/* Replaces *graph by one that reads the averages of its states. */
tn_status tn_read_averages(const tn_state_map *map, tn_graph **graph);

/* The graph that copies states into their averages. With `swa_from` it makes them means of the states at
 * several moments: it adds a moment where TN_AVERAGE_GOAL is not TN_AVERAGE_COUNT, and copies where it is 0
 * or
 * 1. NULL: no state has an average. */
tn_status tn_mean_graph(tn_env *env, struct tn_op_table *ops, const tn_settings *settings,
                        const tn_state_map *map, tn_graph **graph);
