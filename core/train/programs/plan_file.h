/* core/train/programs/plan_file.h: plan.json of a run folder: written, and read again on resume. */
#ifndef TN_CORE_TRAIN_PROGRAMS_PLAN_FILE_H
#define TN_CORE_TRAIN_PROGRAMS_PLAN_FILE_H

#include "core/train/run.h"

/* Where a run resumes, reads the plan of its folder: run->replay then holds the choices. A folder without a
 * plan, or with one that cannot be used, is a warning. Settles what `--resume auto` means: run->resume is the
 * folder from now on, or NULL. */
tn_status tn_replay_open(tn_run *run);

/* FOLDER/plan.json: what `tenon plan` would say, and every choice. Where the run resumes and the programs
 * are not those that the file holds, a warning says what differs, and it is written anew. */
tn_status tn_plan_keep(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                       const char *folder);

#endif
