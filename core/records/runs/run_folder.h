/* core/records/runs/run_folder.h: creating and finding run folders. */
#pragma once

#include "core/run/run.h"

/* Finds the folder of a run that is to be resumed, and locks it until tn_run_folder_leave. run->resume is the
 * folder afterwards, or NULL for a new run. For "auto" it is the newest OUTPUT/NAME*; where that ended before
 * its first checkpoint, the run starts again in it (run->begun). TN_EUNAVAILABLE: another process uses it. */
tn_status tn_run_folder_claim(tn_run *run);
/* Creates and locks OUTPUT/NAME, or NAME-2, NAME-3 ... where that exists, with config.ini inside; or takes
 * run->begun. The caller releases *folder (tn_release); NULL: the run writes no files. */
tn_status tn_run_folder_create(tn_run *run, char **folder);
/* The number of a training that begins now in the folder (run_order.h). */
int64_t tn_run_folder_order(const tn_run *run, const char *folder);
/* Releases what tn_run_folder_claim and _create have locked. */
void tn_run_folder_leave(tn_run *run);
/* run_config.c: writes FOLDER/config.ini, and resolved.ini, which has all defaults, unless they hold the same
 * text; earlier ones are kept as config-1.ini and resolved-1.ini, config-2.ini ... */
tn_status tn_run_config_keep(tn_run *run, const char *folder);
/* The folder that `resume` names, or for "auto" the newest OUTPUT/NAME* with a checkpoint. */
tn_status tn_run_folder_find(tn_run *run, char **folder);
