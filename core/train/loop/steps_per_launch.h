/* core/train/loop/steps_per_launch.h: how many steps are launched at once. */
#pragma once

#include "core/step/programs/programs.h"

/* [run] steps_per_launch, or a number for auto from the estimated time of a step. `set` has STEP, of all
 * phases. */
int32_t tn_steps_per_launch(const tn_run *run, const tn_device *device, const tn_program_set *set);
