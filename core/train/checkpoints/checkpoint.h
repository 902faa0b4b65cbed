/* core/train/checkpoints/checkpoint.h: private to checkpoint*.c. FOLDER/checkpoints/NAME holds three files.
 * While one is written it is called NAME.new; where the file system cannot exchange two folders, the one
 * before is NAME.old for a moment. A damaged one is kept as NAME.bad, NAME.bad-2 ... */
#ifndef TN_CORE_TRAIN_CHECKPOINTS_CHECKPOINT_H
#define TN_CORE_TRAIN_CHECKPOINTS_CHECKPOINT_H

#include "core/train/run.h"

/* The files, in the order in which they are written: with state.json, the last, a checkpoint is whole. */
enum {
  TN_CHECKPOINT_MODEL = 0,
  TN_CHECKPOINT_OPTIMIZER = 1,
  TN_CHECKPOINT_STATE = 2,
  TN_CHECKPOINT_FILES = 3
};
extern const char *const tn_checkpoint_files[TN_CHECKPOINT_FILES];

enum { TN_PLAN_TEXT = 24 };

/* state.json: where the run stands, what made it, and what the other files must be. It holds a checksum
 * of itself. */
typedef struct tn_record {
  tn_progress progress;
  int64_t seed;
  char plan[TN_PLAN_TEXT];
  tn_file_sum files[TN_CHECKPOINT_STATE];
} tn_record;

tn_status tn_record_write(tn_run *run, const tn_record *record, const char *path);
/* TN_EINVAL: damaged, or of another version. TN_EIO: could not be read. */
tn_status tn_record_read(tn_run *run, const char *path, tn_record *record);
/* Whether the files beside it are what it says. */
tn_status tn_record_check(tn_run *run, const tn_record *record, const char *folder);

/* The hash of the program that makes a step, as text. */
void tn_record_plan(const tn_program_set *set, char text[TN_PLAN_TEXT]);

/* Removes a checkpoint's folder; a missing one is fine. Files that are not ours are kept, the folder then
 * under another name. state.json goes first, so that what is left over is no checkpoint. */
tn_status tn_checkpoint_remove(tn_run *run, const char *path);
/* Gives `path` the name PATH.WORD, or PATH.WORD-2 and so on; the arena's, in *aside. */
tn_status tn_checkpoint_set_aside(tn_run *run, const char *path, const char *word, const char **aside);
/* Gives the folder `fresh` the name `path` in one step of the file system; what had it goes away. */
tn_status tn_checkpoint_publish(tn_run *run, const char *fresh, const char *path);

#endif
