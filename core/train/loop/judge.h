/* core/train/loop/judge.h: the number that decides which checkpoint is the best, and when a run that does not
 * improve any more ends ([run] best, best_mode, patience, min_delta). */
#pragma once

#include "core/train/loop/training.h"

/* At the end of an epoch: judges the validation, or the training where there is no validation, and counts the
 * epochs without improvement. Returns whether this is the best epoch so far. */
bool tn_training_judge(tn_training *t);
/* The numbers that are judged: of validation, or of training where the run does not validate; NULL: there are
 * none for this epoch. */
tn_metric_sums *tn_training_judged(tn_training *t);
/* Whether the judged numbers are as good as [run] target. */
bool tn_training_reached_target(tn_training *t);
/* Whether [run] patience is used up. */
bool tn_training_out_of_patience(const tn_training *t);
