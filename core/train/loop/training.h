/* core/train/loop/training.h: private to train.c, fit.c, step.c and loop.c: a training run in progress, on
 * one rank. Every rank goes through the same calls in the same order; what only one may do (folder,
 * checkpoints, observers) is rank 0's. */
#ifndef TN_CORE_TRAIN_LOOP_TRAINING_H
#define TN_CORE_TRAIN_LOOP_TRAINING_H

#include "core/exec/collective.h"
#include "core/train/checkpoints/checkpoint.h"
#include "core/train/loop/observers.h"
#include "core/train/loop/validation_pass.h"

/* Why a run ends; also the result's "status". */
extern const char tn_end_finished[], tn_end_stopped[], tn_end_out_of_time[], tn_end_nonfinite[];

/* How many steps may have been launched whose numbers have not been read. */
enum { TN_MAX_STEPS_AHEAD = 1 };

/* With a scaled loss, one that is not finite is a step that is skipped; after so many in a row no smaller
 * scale will help. */
enum { TN_MAX_LOST_STEPS = 100 };

/* A step that was launched. */
typedef struct tn_launched_step {
  int32_t *slots; /* of its micro-batches */
  int64_t samples;
  tn_event event; /* what observers will hear of it, but for the numbers */
} tn_launched_step;

typedef struct tn_training {
  tn_run *run; /* the rank's own */
  tn_rank_set *ranks;
  tn_device *device;
  _Atomic(tn_comm *) comm; /* NULL: there is one rank */
  tn_program_set set;
  tn_executor *executor;
  tn_feeder *train, *valid; /* valid NULL: no validation */
  tn_control_block step_block, eval_block, weigh_block, micro_block;
  tn_measure_outputs step_outputs, eval_outputs, micro_outputs;
  tn_metric_sums epoch_sums, step_sums, valid_sums;
  tn_observers *observers; /* rank 0 */
  char *folder;            /* rank 0; NULL: nothing is written */
  bool writes;             /* whether rank 0 has a folder */
  bool saved;              /* the folder has a checkpoint */
  tn_progress progress;
  int64_t steps_per_epoch, steps; /* of the whole run */
  int64_t averaged_at;            /* the step after which running statistics were averaged last */
  int32_t slots, micro_batches;
  tn_launched_step ahead[TN_MAX_STEPS_AHEAD + 1]; /* launched and not read, oldest first */
  int32_t n_ahead, most_ahead;
  double started_s, first_step_s, lr;
  int32_t lost_steps_in_a_row; /* skipped steps whose loss was not finite */
  /* What was not finite: the loss of this step, or if `validation_failed` that of the validation after it. */
  int64_t failed_step;
  bool validation_failed, explained; /* explained: the message says which op was the first */
  double rate_s;                     /* when the last step ended, for samples per second */
  double samples_per_s;
  const char *why; /* NULL: still running */
} tn_training;

/* fit.c: all of it that needs no other rank; then, on all ranks at once, equal plans and equal state. What
 * was made before a failure is freed by tn_training_release. */
tn_status tn_training_prepare(tn_training *t);
tn_status tn_training_start(tn_training *t);
void tn_training_release(tn_training *t);
/* Back to the last checkpoint, or to where the run began; on all ranks at once. */
tn_status tn_training_rewind(tn_training *t);

/* nonfinite.c: after TN_ENONFINITE of tn_training_run, on all ranks at once: adds to the message which op of
 * which layer was the first whose result was not finite. The state is that of some step afterwards. */
tn_status tn_training_find_nonfinite(tn_training *t);

/* step.c: takes the next update's batches and launches it; reads steps that have ended. TN_EOF: the epoch is
 * over. */
tn_status tn_training_step(tn_training *t);
/* Reads all steps that were launched. */
tn_status tn_training_read_steps(tn_training *t);

/* loop.c: trains until the last step or until something ends the run; t->why says what. */
tn_status tn_training_run(tn_training *t);
/* An event as things stand, without numbers. */
tn_event tn_training_event(const tn_training *t, int32_t kind);
void tn_training_post(tn_training *t, int32_t kind, const char *text);

#endif
