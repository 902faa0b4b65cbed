/* core/compile/rematerialization/memory_limit.h: [run] memory_limit: rematerializes values, block by block,
 * and offloads values, until the arena fits. */
#pragma once

#include "core/compile/memory/memory_plan.h"

/* Rewrites the cover so that the arena of its plan takes at most `limit` bytes, or as few as can be reached.
 * A cover that fits stays unchanged. `map` and `slot`: as in tn_plan. offload: values may be kept in memory
 * of the host, where the rate of the device's link to it is known. */
tn_status tn_pass_memory_limit(tn_cover *cover, const tn_state_map *map, const tn_slot_layout *slot,
                               int64_t limit, bool offload);
