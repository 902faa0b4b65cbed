/* core/compare/side.h: one of two backends: a training of its own, on one device, without a run folder. */
#pragma once

#include "core/train/loop/training.h"

typedef struct tn_compare_side {
  tn_run *run;
  tn_training training;
} tn_compare_side;

/* Opens device, programs and data of a run. Messages are in the run's env. tn_compare_side_close frees a side
 * whose opening failed, too. */
tn_status tn_compare_side_open(tn_compare_side *side, tn_run *run);
void tn_compare_side_close(tn_compare_side *side);

/* Initial or loaded weights. */
tn_status tn_compare_side_start(tn_compare_side *side);
/* Gives one side the parameters, statistics and optimizer state of the other. */
tn_status tn_compare_side_copy_state(tn_compare_side *to, tn_compare_side *from);
/* Takes a step; *loss is its training loss. *ended: it is not finite, and training ends with this step. */
tn_status tn_compare_side_step(tn_compare_side *side, double *loss, bool *ended);
