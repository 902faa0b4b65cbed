/* core/records/checkpoints/check_place.h: whether a run folder takes checkpoints, before the first step: a
 * failure would come after the first epoch otherwise. */
#pragma once

#include "core/step/programs/programs.h"

/* Begins a file as a checkpoint does, and removes it: the path may be too long, a folder read-only, or a file
 * in the way. Compares the bytes of a checkpoint with the room of the file system. TN_EIO, TN_EINVAL with the
 * reason. */
tn_status tn_checkpoint_check_place(tn_run *run, const tn_program_set *set, const char *folder);
