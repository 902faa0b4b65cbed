/* core/records/runs/weights_file.h: the file that a path to weights stands for. */
#pragma once

#include "core/records/checkpoints/weights.h"

/* tn_weights_load of what `given` stands for: a safetensors file, a checkpoint's folder, or a run folder, of
 * which the best checkpoint is taken, or the last where there is no best, or where it is not as it was
 * written (a warning says so). source->path is not read. *path is the file, which the caller releases
 * (tn_release). TN_EINVAL also for a folder without weights. */
tn_status tn_weights_load_from(tn_run *run, tn_executor *executor, const tn_state_map *map, const char *given,
                               const tn_weights_source *source, tn_weights_counts *counts, char **path);

/* Loads what --weights or [weights] file names, if one is given. */
tn_status tn_weights_load_configured(tn_run *run, tn_executor *executor, const tn_state_map *map);
/* The same for commands that need trained parameters: without a file, those of the newest run of this name;
 * an error if the model has parameters and there is no such run. `command` is for the message. */
tn_status tn_weights_load_required(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                   const char *command);
/* Sets run->learnt to what the data of the weights have taught their source, before data are opened: of
 * `folder`, or for NULL of the file that tn_weights_load_required will load. It stays NULL where there is no
 * such file, and where the source of the data does not learn. */
tn_status tn_weights_read_learnt(tn_run *run, const char *folder);
