/* core/train/checkpoints/weights_file.h: the file that a path to weights stands for. */
#ifndef TN_CORE_TRAIN_CHECKPOINTS_WEIGHTS_FILE_H
#define TN_CORE_TRAIN_CHECKPOINTS_WEIGHTS_FILE_H

#include "core/train/run.h"

/* `given` is a safetensors file, a checkpoint's folder, or a run folder, of which the best checkpoint is
 * taken, or the last where there is no best. "": the newest run of this configuration's name; *path is NULL
 * where there is none. The caller releases *path (tn_release). TN_EINVAL: a folder without weights. */
tn_status tn_weights_find(tn_run *run, const char *given, char **path);

#endif
