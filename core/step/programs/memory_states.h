/* core/step/programs/memory_states.h: the states of a run by their use. */
#pragma once

#include "core/step/programs/memory_report.h"

/* Adds the bytes of all regions, the gaps between states included, to the rows of the report. */
tn_status tn_memory_add_states(const tn_state_map *map, int64_t rows[TN_USES]);
/* The row of a state, TN_USE_... */
int32_t tn_memory_state_row(const tn_placement *state);
