/* core/records/checkpoints/checkpoint.h: saving and loading the checkpoints of a run folder. */
#pragma once

#include "core/step/values/metric_sums.h"

/* The position of a run, as state.json holds it. */
typedef struct tn_progress {
  int64_t step, epoch, batch; /* completed steps; the next batch is number `batch` of `epoch` */
  double best;                /* value of the best checkpoint so far; NaN: there is no best checkpoint */
  double improved;            /* the value from which the epochs of [run] patience count; NaN: none */
  int64_t waited;             /* epochs since then */
  double seconds;             /* spent by earlier processes */
  int64_t epoch_samples;      /* of the updates of the epoch so far, with padding; -1: unknown */
  double schedule[TN_SCHEDULE_STATE]; /* the state of the schedule */
  double score;                       /* the judged metric of the epoch that has ended here, or NaN */
  bool ended;          /* the end of the epoch (validation, best checkpoint) is done for this step */
  tn_metric_sums sums; /* of the epoch so far: counts and sums only; borrowed */
} tn_progress;

/* Writes FOLDER/checkpoints/NAME atomically: into a temporary folder, synced, then exchanged. */
tn_status tn_checkpoint_save(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const char *folder, const char *name, const tn_progress *progress);
/* Keeps `last`, which was saved after `step`, as FOLDER/checkpoints/step-N, and removes those of them that
 * [run] keep_last, keep_best (`smaller` scores are better) and keep_every do not name. Without these keys
 * nothing is done. */
tn_status tn_checkpoint_keep(tn_run *run, const char *folder, int64_t step, bool smaller);
/* TN_EINVAL if `parent`, FOLDER/checkpoints, is a symbolic link: two runs would replace each other's. */
tn_status tn_checkpoint_check_parent(tn_run *run, const char *parent);
/* Loads the newest valid checkpoint of FOLDER, including those that an interrupted save left. A checkpoint
 * that is damaged or of another model gives a warning and is renamed. Afterwards checkpoints/last is the
 * checkpoint that was loaded. TN_EINVAL: no checkpoint is valid; nothing was renamed. */
tn_status tn_checkpoint_resume(tn_run *run, tn_executor *executor, const tn_program_set *set,
                               const char *folder, tn_progress *progress);
