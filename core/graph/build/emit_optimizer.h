/* core/graph/build/emit_optimizer.h: the update of a parameter by an optimizer, whether that is a formula or
 * a function. */
#pragma once

#include "core/graph/graph.h"
#include "tenon/plugin/optimizer.h"

/* Emits the optimizer in the top frame, whose values 0 and 1 are the parameter and its gradient, and whose
 * callbacks answer for states, scheduled options and counters. Commits the states, and yields the new
 * parameter. For a frame with four results a formula that defines kept and move yields them, too, and the
 * gradient that the step follows. TN_EINVAL if the optimizer refuses its options, or its formula has a
 * mistake, with the column.
 */
tn_status tn_optimizer_update(tn_build *b, const tn_optimizer *optimizer, const void *options);
