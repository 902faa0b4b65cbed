/* core/train/checkpoints/run_folder.h: run folders. */
#ifndef TN_CORE_TRAIN_CHECKPOINTS_RUN_FOLDER_H
#define TN_CORE_TRAIN_CHECKPOINTS_RUN_FOLDER_H

#include "core/train/run.h"

/* OUTPUT/NAME, or NAME-2, -3 ... where it exists; made with config.ini inside. Caller's (tn_release);
 * NULL when nothing is to be written. */
tn_status tn_run_folder_create(tn_run *run, char **folder);
/* The folder that `resume` means: itself, or for "auto" the newest OUTPUT/NAME* with a checkpoint. */
tn_status tn_run_folder_find(tn_run *run, char **folder);

#endif
