/* core/compile/layout/assign_layouts.h: pass `layout`: chooses a variant for each group, and with it the
 * layout of every value; inserts `reorder` groups where a value is made in one layout and read in another. */
#pragma once

#include "core/compile/select/cover.h"
#include "core/compile/state_map.h"

/* `map` gives the layouts of states; NULL: row-major. `parameters` is the same map if this program may choose
 * the layouts of parameters (parameter_layouts.h), else NULL. */
tn_status tn_pass_layout(const tn_target *target, tn_cover *cover, const tn_state_map *map,
                         tn_state_map *parameters);
