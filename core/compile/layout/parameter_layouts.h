/* core/compile/layout/parameter_layouts.h: the layouts of parameters for a whole run. */
#pragma once

#include "core/compile/select/cover.h"
#include "core/compile/state_map.h"

/* Gives a parameter the layout that costs least over all of its uses, provided that no use ties it to the
 * layout of another operand and that its gradient is packed beside it. A resumed run takes the recorded
 * layouts. */
tn_status tn_layout_parameters(const tn_target *target, const tn_cover *cover, tn_state_map *map);
