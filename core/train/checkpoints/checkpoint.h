/* core/train/checkpoints/checkpoint.h: checkpoints of a run folder. */
#ifndef TN_CORE_TRAIN_CHECKPOINTS_CHECKPOINT_H
#define TN_CORE_TRAIN_CHECKPOINTS_CHECKPOINT_H

#include "core/train/programs/metric_sums.h"

/* Where a run stands; state.json. */
typedef struct tn_progress {
  int64_t step, epoch, batch; /* steps done; the next batch is number `batch` of `epoch` */
  double best;                /* value of the best checkpoint so far; NaN: none */
  double seconds;             /* spent before this process */
  bool ended;                 /* what ends an epoch, validation above all, is done for this step */
  tn_metric_sums sums;        /* of the epoch so far: counts and sums only; borrowed */
} tn_progress;

/* Writes FOLDER/checkpoints/NAME whole or not at all: into a temporary folder, synced, exchanged. */
tn_status tn_checkpoint_save(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const char *folder, const char *name, const tn_progress *progress);
/* Loads the newest valid checkpoint of FOLDER, whatever interrupted its writing. One that is damaged or of
 * another model is named in the log and kept beside under another name. Afterwards checkpoints/last is what
 * was loaded. TN_EINVAL, with everything left as it is, when none is valid. */
tn_status tn_checkpoint_resume(tn_run *run, tn_executor *executor, const tn_program_set *set,
                               const char *folder, tn_progress *progress);

#endif
