/* core/records/checkpoints/checkpoint_files.h: the files of a checkpoint, private to this folder.
 * FOLDER/checkpoints/NAME holds three files. It is called NAME.new while it is written; where the file system
 * cannot exchange two folders, the previous one is NAME.old for a moment. A damaged one is renamed to
 * NAME.bad, NAME.bad-2 ... */
#pragma once

#include "core/records/checkpoints/checkpoint.h"
#include "core/records/checkpoints/weights.h"

/* The files, in the order in which they are written. state.json is the last: with it the checkpoint is
 * complete. */
enum {
  TN_CHECKPOINT_MODEL = 0,
  TN_CHECKPOINT_OPTIMIZER = 1,
  TN_CHECKPOINT_STATE = 2,
  TN_CHECKPOINT_FILES = 3
};
extern const char *const tn_checkpoint_files[TN_CHECKPOINT_FILES];

enum { TN_PLAN_TEXT = 24, TN_SCHEDULE_TEXT = 64 };

/* state.json: the position of the run, its seed and plan, and the sizes and checksums of the other files. It
 * holds a checksum of itself. */
typedef struct tn_state_record {
  tn_progress progress;
  int64_t seed;
  char plan[TN_PLAN_TEXT];
  char schedule[TN_SCHEDULE_TEXT]; /* the schedule to which the state in `progress` belongs; "": none has one
                                    */
  tn_file_sum files[TN_CHECKPOINT_STATE];
} tn_state_record;

tn_status tn_state_record_write(tn_run *run, const tn_state_record *record, const char *path);
/* The sums of the record lie in the arena, whose handle gets the errors. TN_EINVAL: the file is damaged, or
 * of another version. TN_EIO: it could not be read. */
tn_status tn_state_record_read(tn_arena *arena, const char *path, tn_state_record *record);
/* Compares the other files with the recorded sizes and checksums. */
tn_status tn_state_record_check(const void *handle, const tn_state_record *record, const char *folder);
/* The record of a file of a checkpoint; *recorded is false for a file that is in none: it is no
 * model.safetensors or optimizer.safetensors, or has no state.json beside it. */
tn_status tn_checkpoint_file_sum(const void *handle, const char *path, tn_file_sum *sum, bool *recorded);
/* TN_EINVAL: a file of this size and checksum is not as it was written. */
tn_status tn_file_sum_compare(const void *handle, const char *path, const tn_file_sum *recorded,
                              uint64_t bytes, uint32_t crc);
/* Compares one file with the record beside it, once more where a training may have exchanged the checkpoint
 * meanwhile. TN_EINVAL: it is not as it was written. TN_OK also for a file that is in no checkpoint. */
tn_status tn_checkpoint_file_check(const void *handle, const char *path);

/* The hash of the step program's plan, as text. */
void tn_plan_hash_text(const tn_program_set *set, char text[TN_PLAN_TEXT]);

/* The name of the run's schedule if it has a state, else "". */
void tn_schedule_text(const tn_run *run, char text[TN_SCHEDULE_TEXT]);

/* Removes a checkpoint's folder; a missing folder is no error. A folder with foreign files is renamed instead
 * of removed. */
tn_status tn_checkpoint_remove(tn_run *run, const char *path);
/* Renames `path` to PATH.WORD, or PATH.WORD-2 and so on; *aside is the new name, in the run's arena. */
tn_status tn_checkpoint_rename_aside(tn_run *run, const char *path, const char *word, const char **aside);
/* Renames the folder `temporary` to `path` by one call of the file system, and removes the folder that had
 * this name. */
tn_status tn_checkpoint_publish(tn_run *run, const char *temporary, const char *path);
