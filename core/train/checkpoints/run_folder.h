/* core/train/checkpoints/run_folder.h: creating and finding run folders. */
#ifndef TN_CORE_TRAIN_CHECKPOINTS_RUN_FOLDER_H
#define TN_CORE_TRAIN_CHECKPOINTS_RUN_FOLDER_H

#include "core/train/run.h"

/* Creates OUTPUT/NAME, or NAME-2, NAME-3 ... where that exists, with config.ini inside. The caller releases
 * *folder (tn_release); NULL: the run writes no files. */
tn_status tn_run_folder_create(tn_run *run, char **folder);
/* The folder that `resume` names, or for "auto" the newest OUTPUT/NAME* with a checkpoint. */
tn_status tn_run_folder_find(tn_run *run, char **folder);

#endif
