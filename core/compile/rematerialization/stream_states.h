/* core/compile/rematerialization/stream_states.h: copies to the device of states in streamed regions
 * (tn_region.streamed): weights that the device has no room for. */
#pragma once

#include "core/compile/select/cover.h"
#include "core/compile/state_map.h"

/* Adds a group in front of each reader that fetches the state, and lets the reader use the copy. A later
 * reader uses the same copy if fewer bytes of other weights are fetched between the two than the state has.
 * The memory plan launches the copies ahead of their readers (memory/place_transfers.c). Without a streamed
 * region the cover stays as it is. */
tn_status tn_fetch_streamed_states(tn_cover *cover, const tn_state_map *map);
