/* core/train/loop/training.h: private to train.c, fit.c, step.c and loop.c: a training run in progress, on
 * one rank. Every rank goes through the same calls in the same order; what only one may do (folder,
 * checkpoints, observers) is rank 0's. */
#ifndef TN_CORE_TRAIN_LOOP_TRAINING_H
#define TN_CORE_TRAIN_LOOP_TRAINING_H

#include "core/train/distributed/devices.h"
#include "core/train/run.h"

/* Why a run ends; also the result's "status". */
extern const char tn_why_finished[], tn_why_stopped[], tn_why_out_of_time[], tn_why_nonfinite[];

/* How many steps may have been launched whose numbers have not been read. */
enum { TN_MOST_AHEAD = 1 };

/* With a scaled loss, one that is not finite is a step that is skipped; after so many in a row no smaller
 * scale will help. */
enum { TN_MOST_LOST = 100 };

/* A step that was launched. */
typedef struct tn_launched {
  int32_t *slots; /* of its micro-batches */
  int64_t samples;
  tn_event event; /* what observers will hear of it, but for the numbers */
} tn_launched;

typedef struct tn_fit {
  tn_run *run; /* the rank's own */
  tn_rank_set *ranks;
  tn_device *device;
  _Atomic(tn_comm *) comm; /* NULL: there is one rank */
  tn_program_set set;
  tn_executor *executor;
  tn_feeder *train, *valid; /* valid NULL: no validation */
  tn_controls step_controls, eval_controls, weigh_controls, micro_controls;
  tn_readings step_readings, eval_readings, micro_readings;
  tn_tally epoch_tally, step_tally, valid_tally;
  tn_watch *watch; /* rank 0 */
  char *folder;    /* rank 0; NULL: nothing is written */
  bool writes;     /* whether rank 0 has a folder */
  bool saved;      /* the folder has a checkpoint */
  tn_progress progress;
  int64_t steps_per_epoch, steps; /* of the whole run */
  int64_t averaged_at;            /* the step after which running statistics were averaged last */
  int32_t slots, micro_batches;
  tn_launched ahead[TN_MOST_AHEAD + 1]; /* launched and not read, oldest first */
  int32_t n_ahead, most_ahead;
  double started_s, first_step_s, lr;
  int32_t lost_in_a_row; /* skipped steps whose loss was not finite */
  /* What was not finite: the loss of this step, or if `validated` that of the validation after it. */
  int64_t failed_step;
  bool validated, explained; /* explained: the message says which op was the first */
  double rate_s;             /* when the last step ended, for samples per second */
  double samples_per_s;
  const char *why; /* NULL: still running */
} tn_fit;

/* fit.c: all of it that needs no other rank; then, on all ranks at once, equal plans and equal state. What
 * was made before a failure is freed by tn_fit_tear_down. */
tn_status tn_fit_set_up(tn_fit *t);
tn_status tn_fit_start(tn_fit *t);
void tn_fit_tear_down(tn_fit *t);
/* Back to the last checkpoint, or to where the run began; on all ranks at once. */
tn_status tn_fit_rewind(tn_fit *t);

/* nonfinite.c: after TN_ENONFINITE of tn_fit_train, on all ranks at once: adds to the message which op of
 * which layer was the first whose result was not finite. The state is that of some step afterwards. */
tn_status tn_fit_explain(tn_fit *t);

/* step.c: takes the next update's batches and launches it; reads steps that have ended. TN_EOF: the epoch is
 * over. */
tn_status tn_fit_step(tn_fit *t);
/* Reads all steps that were launched. */
tn_status tn_fit_catch_up(tn_fit *t);

/* loop.c: trains until the last step or until something ends the run; t->why says what. */
tn_status tn_fit_train(tn_fit *t);
/* An event as things stand, without numbers. */
tn_event tn_fit_event(const tn_fit *t, int32_t kind);
void tn_fit_post(tn_fit *t, int32_t what, const char *text);

#endif
