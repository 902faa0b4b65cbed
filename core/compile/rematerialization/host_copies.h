/* core/compile/rematerialization/host_copies.h: copies between the device and the groups that are placed on
 * the host (tn_group.placed). */
#pragma once

#include "core/compile/select/cover.h"
#include "core/compile/state_map.h"

/* Adds a group for each value that crosses: the device's operands of placed groups are offloaded as soon as
 * they are made, and values of the host that the device reads are fetched behind their makers. Operands,
 * packs, commits and outputs then read the copies. Without states in memory of the host the cover stays as it
 * is. */
tn_status tn_add_host_copies(tn_cover *cover, const tn_state_map *map);
