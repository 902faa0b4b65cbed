/* core/records/checkpoints/stored_states.h: the names of states in files.
 *
 * Files hold a state under its path. In a checkpoint of a run with averages (core/step/update/averages.h)
 * the model's file holds the weights that validation read: the average of PATH under the name PATH. The
 * trained values are PATH.trained in the optimizer's file. */
#pragma once

#include "core/compile/state_map.h"

typedef struct tn_stored_state {
  const char *name; /* in the file */
  const tn_placement *state;
} tn_stored_state;

typedef struct tn_stored_states {
  tn_stored_state *v;       /* in the order of the map */
  tn_stored_state *by_name; /* the same, sorted by name */
  int32_t n;
} tn_stored_states;

/* The states of the kinds (masks of 1 << TN_STATE_...), in the arena. `averages`: as in a checkpoint;
 * otherwise every state under its path. */
tn_status tn_stored_states_list(tn_arena *arena, const tn_state_map *map, uint32_t kinds, bool averages,
                                tn_stored_states *list);
bool tn_stored_states_have(const tn_stored_states *list, const char *name);
/* Parameters, buffers and optimizer state must be finite, in files and in checkpoints. State of the host may
 * have any value. TN_ENONFINITE: an element is not. */
tn_status tn_stored_state_check_finite(const void *handle, const tn_stored_state *stored, const void *data);
