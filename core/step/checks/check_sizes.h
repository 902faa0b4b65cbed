/* core/step/checks/check_sizes.h: models that take one size alone. */
#pragma once

#include "core/compile/state_map.h"
#include "core/run/run.h"

/* All programs of a run share their states: notes the first one that has another type in a graph of this
 * size, of [model] sizes or lengths, than in that of the largest one, with the line of its layer. */
tn_status tn_sizes_check_states(tn_run *run, const tn_state_map *map, const tn_graph *graph, int64_t size);
/* The model was built at the largest size, and its mistakes are of this one: adds that to their texts. */
tn_status tn_sizes_name_failure(tn_run *run, int64_t size);
