/* core/records/checkpoints/adapter_begin.h: what adapters take from the weights below them. */
#pragma once

#include "core/step/programs/programs.h"

/* Gives the norms of units that [adapt] type = dora trains their first values, those of the weights that were
 * loaded: A or B is zeros then, so that the model begins as its base. */
tn_status tn_adapters_begin(tn_run *run, tn_executor *executor, const tn_state_map *map);
