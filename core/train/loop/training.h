/* core/train/loop/training.h: a training run in progress, on one rank. All ranks make the same calls in the
 * same order; rank 0 alone has the folder, checkpoints and observers. */
#pragma once

#include "core/exec/collective.h"
#include "core/records/checkpoints/checkpoint.h"
#include "core/distributed/ranks/divided_states.h"
#include "core/train/observers/observers.h"
#include "core/train/report/stragglers.h"
#include "core/train/loop/update_sizes.h"
#include "core/train/samples/samples.h"
#include "core/train/feed/validation_pass.h"
#include "core/step/profile/step_profile.h"
#include "core/step/values/watch_values.h"

/* The reasons for the end of a run; also the result's "status". */
extern const char tn_end_finished[], tn_end_stopped[], tn_end_out_of_time[], tn_end_early[],
    tn_end_observer[], tn_end_nonfinite[], tn_end_failed[], tn_end_paused[], tn_end_target[];

/* A file of this name in the run folder ends the training as a signal does, and is removed. */
#define TN_STOP_NAME "stop"

/* The most steps that may be launched and unread: two launches. */
enum { TN_MAX_STEPS_AHEAD = 2 * TN_MAX_STEPS_PER_LAUNCH };

/* With a scaled loss, the run ends after so many skipped steps in a row: a smaller scale does not help. */
enum { TN_MAX_LOST_STEPS = 100 };

/* A step that was launched. */
typedef struct tn_launched_step {
  int32_t *slots; /* of its micro-batches */
  int32_t n;      /* of them */
  int64_t samples;
  int32_t length; /* the number of its length, of [model] lengths */
  tn_event event; /* without the numbers, which are read later */
} tn_launched_step;

/* The control blocks and outputs of the programs of a phase (settings.h). */
typedef struct tn_phase_slots {
  tn_control_block step_block, micro_block;
  tn_measure_outputs step_outputs, micro_outputs;
} tn_phase_slots;

/* Of a watched step of a phase, [run] watch. */
typedef struct tn_watch_slots {
  tn_phase_slots slots; /* without micro-batches, which are not watched */
  tn_watch_values values;
} tn_watch_slots;

/* The profile of some steps (profile_steps.c). */
typedef struct tn_profiling {
  tn_step_profile *taken; /* NULL: none was asked for */
  bool over;              /* no step is to be profiled any more */
  int64_t wanted, done, samples;
  int64_t first;                        /* its number, counted from 1 */
  char *table;                          /* of the event */
  const char *report_path, *trace_path; /* files that were written, on rank 0; NULL: none */
} tn_profiling;

typedef struct tn_training {
  tn_run *run; /* the rank's own */
  tn_rank_set *ranks;
  tn_device *device;
  _Atomic(tn_comm *) comm; /* NULL: there is one rank */
  tn_program_set set;
  tn_executor *executor;
  tn_loader *loaders[2];                /* opened, and not taken by a feeder yet */
  tn_feeder *train, *valid;             /* valid is NULL without validation */
  int32_t phase;                        /* of the last step */
  tn_phase_slots phases[TN_MAX_PHASES]; /* of all phases; those of `phase` are also the ones below */
  tn_control_block step_block, weigh_block, micro_block;
  tn_measure_outputs step_outputs, micro_outputs;
  tn_watch_slots watch[TN_MAX_PHASES];    /* with [run] watch */
  tn_phase_slots shorter[TN_MAX_LENGTHS]; /* of the steps of all lengths or sizes but the largest */
  int32_t size;                           /* of the samples of `train`, counted from 0, with [model] sizes */
  tn_validation_program eval[TN_MAX_LENGTHS];
  tn_metric_sums epoch_sums, step_sums, valid_sums;
  tn_samples *samples;     /* NULL: none are shown */
  tn_observers *observers; /* rank 0 */
  char *folder;            /* rank 0; NULL: nothing is written */
  bool writes;             /* whether rank 0 has a folder */
  bool saved;              /* the folder has a checkpoint */
  bool resumed;            /* the run continues an earlier one */
  tn_progress progress;
  int64_t steps_per_epoch; /* of the present epoch */
  int64_t steps;           /* of the whole run */
  tn_update_sizes sizes;   /* [schedule.accumulate] */
  tn_update_walk walk;     /* with it, the updates of the epoch that were launched */
  int64_t averaged_at;     /* the step after which running statistics were averaged last */
  int32_t slots;
  int32_t micro_batches;                      /* [optimizer] accumulate: the most of an update */
  tn_launched_step ahead[TN_MAX_STEPS_AHEAD]; /* launched and not read, oldest first */
  int32_t n_ahead, max_ahead;
  int32_t steps_per_launch; /* where so many are left before a point at which the state is read */
  double started_s, first_step_s, lr;
  int32_t lost_steps_in_a_row; /* skipped steps whose loss was not finite */
  /* The step whose loss was not finite; with validation_failed, the step before the failed validation. */
  int64_t failed_step;
  bool validation_failed, explained; /* explained: the message names the first op */
  double rate_s;                     /* the end of the last step, for samples per second */
  double samples_per_s;
  bool smaller_is_better; /* of the judged metric, [run] best */
  bool stop_file;         /* the end was asked for by a file */
  double looked_s;        /* when that file was looked for last */
  const char *end_reason; /* NULL: the run goes on */
  const char *end_text;   /* of tn_training_explain_end */
  tn_step_times times;
  bool recorded; /* history.jsonl has the start, and no end yet */
  tn_profiling profiling;
} tn_training;

/* open_training.c: prepares the parts that do not involve other ranks; then, on all ranks at once, compares
 * plans and makes the state equal. After a failure, tn_trainings_release frees the prepared parts. */
tn_status tn_training_prepare(tn_training *t);
tn_status tn_training_start(tn_training *t);
/* Of n ranks of this process. */
void tn_trainings_release(tn_training *trainings, int32_t n);
/* For tn_divided_run. */
tn_divided_access tn_training_divided(const tn_training *t);
/* Returns to the last checkpoint, or to the start of the run; on all ranks at once. */
tn_status tn_training_rewind(tn_training *t);

/* find_nonfinite.c: after TN_ENONFINITE of tn_training_run, on all ranks at once: adds the first op whose
 * result was not finite to the message. Afterwards the state is that of some repeated step. */
tn_status tn_training_find_nonfinite(tn_training *t);

/* record_run.c, on rank 0: writes the start of the training to history.jsonl; finds the text for the reason
 * of its end, from the error of the run if it has failed, while the observers are open; and writes the end.
 */
void tn_training_record_start(tn_training *t);
void tn_training_explain_end(tn_training *t);
void tn_training_record_end(tn_training *t);

/* describe_run.c: starts the observers with the facts about the run; on rank 0. */
tn_status tn_training_start_observers(tn_training *t);
/* events.c: "nan", "inf" or "-inf"; the sign of a NaN says nothing. */
const char *tn_training_nonfinite_text(double value);
/* Device memory of one device, as planned. */
int64_t tn_training_planned_bytes(const tn_training *t);

/* position.c: a step of the run, counted from 0, for the values of schedules. */
tn_step_position tn_training_at(const tn_training *t, int64_t step);
/* The samples of the updates of the epoch so far, over all devices and micro-batches, with padding. */
int64_t tn_training_epoch_samples(const tn_training *t);
/* The micro-batches of the next update; 0: the epoch is over. */
int32_t tn_training_next_batches(const tn_training *t);
/* When the feeder is there, and where the position has changed: sets the steps of the run and of the present
 * epoch. */
tn_status tn_training_plan_steps(tn_training *t);
/* Sets the steps of the present epoch alone. */
void tn_training_count_epoch(tn_training *t);
/* On rank 0: moves the position of a checkpoint that was made with updates or epochs of another length to the
 * same sample. `remark`: says so (run_differences.h). */
tn_status tn_training_move_position(tn_training *t, bool remark);

/* begin_epoch.c: starts the loader at the next update, with the steps and the size of its epoch. */
tn_status tn_training_start_data(tn_training *t);
/* For commands that take steps of their own, without validation and checkpoints: starts the loader before the
 * first step, and the next epoch where the last one has ended. */
tn_status tn_training_begin_epoch(tn_training *t);

/* sizes.c: with [model] sizes, gives the feeder samples of the size of the present epoch. No step is under
 * way. */
tn_status tn_training_take_size(tn_training *t);
/* A remark with the epochs of each size. */
tn_status tn_training_describe_sizes(tn_training *t);

/* step.c: the programs of the phase of an epoch, counted from 1, are those of the next steps. All steps
 * before are read. */
void tn_training_enter_phase(tn_training *t, int64_t epoch);

/* profile_steps.c: the profile that [run] profile or --trace asks for, with the errors that are known before
 * training; then, when the first step is known, its place. */
tn_status tn_training_open_profile(tn_training *t);
void tn_training_place_profile(tn_training *t);
/* Whether the next step is profiled. */
bool tn_training_profile_is_due(const tn_training *t);
/* Counts a step that was launched and profiled; returns whether it is the last one. */
bool tn_training_count_profiled(tn_training *t, int64_t samples);
/* Before something else than steps, with none under way. */
tn_status tn_training_pause_profile(tn_training *t);
/* Writes and reports the profile of the steps so far, once; none is under way. */
tn_status tn_training_end_profile(tn_training *t);
/* Ends it without a word. */
void tn_training_drop_profile(tn_training *t);
void tn_training_release_profile(tn_training *t);

/* step.c: launches the next updates, steps_per_launch or one, and reads steps that have ended. TN_EOF: the
 * epoch has ended. */
tn_status tn_training_step(tn_training *t);
/* stragglers.c: around the launch of a step or of several: with several ranks, compares their times every
 * TN_STRAGGLER_STEPS steps, on all ranks at once, and names a rank that is slow in the log. */
void tn_training_time_step(tn_training *t);
tn_status tn_training_timed_step(tn_training *t, int64_t steps);
/* The pass over the validation data, without progress calls. */
tn_validation tn_training_validation(const tn_training *t);
/* Reads all launched steps. */
tn_status tn_training_read_steps(tn_training *t);

/* show_samples.c: [run] samples: on all ranks, when the run is prepared; and after a validation. */
tn_status tn_training_open_samples(tn_training *t);
tn_status tn_training_show_samples(tn_training *t);

/* prune.c: [prune]: TN_EINVAL: its first step is behind the end of the run. */
tn_status tn_training_check_prune(const tn_training *t);
/* The first step from `step` on in front of which weights are chosen; INT64_MAX: none. */
int64_t tn_training_next_prune(const tn_training *t, int64_t step);
/* Whether that is the next step of the epoch; then all steps before are read, and weights are chosen. */
bool tn_training_prunes(const tn_training *t);
tn_status tn_training_prune(tn_training *t);
/* The share of pruned weights; -1: there is no [prune]. */
double tn_training_sparsity(const tn_training *t);
/* loop.c: trains until the last step or an earlier end; t->end_reason is the reason. */
tn_status tn_training_run(tn_training *t);
/* events.c: an event with the current position, without numbers. */
tn_event tn_training_event(const tn_training *t, int32_t kind);
void tn_training_post(tn_training *t, int32_t kind, const char *text);
