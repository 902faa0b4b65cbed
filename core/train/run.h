/* core/train/run.h: private to core/train: a run and what it is made of. */
#ifndef TN_CORE_TRAIN_RUN_H
#define TN_CORE_TRAIN_RUN_H

#include <stdatomic.h>

#include "core/compile/pipeline.h"
#include "core/data/loader.h"
#include "core/exec/executor.h"
#include "core/train/graphs/training_graph.h"
#include "tenon/model.h"

struct tn_run {
  tn_env env;
  tn_error_record record;
  tn_context *context;
  tn_registry *registry;   /* the context's */
  struct tn_op_table *ops; /* the context's */
  tn_ini ini;
  tn_settings settings;
  tn_arena arena;
  const char *output, *resume;    /* as given; NULL: the configuration's */
  const struct tn_replay *replay; /* choices of the run that is resumed (replay.h); NULL: there are none */
  int32_t terminal_columns;
  /* Of several that train together: each has a tn_run of its own, with its own messages and memory, over the
   * same configuration. 0 ranks: nobody has asked yet, and there is one. */
  int32_t rank, ranks;
  tn_model_fn emit; /* the model, in place of [model]; NULL: the configuration has it */
  void *emit_user;
  bool planning; /* nothing is to run, not even to be measured */
  atomic_int stop;
  double opened_s; /* tn_clock_s when the run was opened */
};

/* ---- programs.c: the set of programs over one state ---- */

enum {
  TN_PROGRAM_INIT = 0,
  TN_PROGRAM_STEP = 1,
  TN_PROGRAM_EVAL = 2,
  TN_PROGRAM_PREDICT = 3,
  TN_PROGRAM_REFRESH = 4, /* derived state, from what it is derived from; not there if there is none */
  /* Where an update has several micro-batches: the weighing runs over all of them, then this one over all
   * but the last, and the step over the last. The three read the same slots: those of the step. */
  TN_PROGRAM_WEIGH,
  TN_PROGRAM_MICRO,
  TN_PROGRAM_AVERAGE, /* running statistics, over ranks */
  TN_PROGRAMS
};

/* Which programs to make and for what batch, which is that of a rank and micro-batch. Those that belong to
 * others are made with them: weighing and micro-batches with the step, averages with step or evaluation. */
typedef struct tn_program_request {
  int64_t batch[TN_PROGRAMS]; /* 0: not wanted (init always is) */
  const tn_compile_options *dump;
  int64_t arena_limit; /* bytes that no arena should exceed; 0: none */
} tn_program_request;

typedef struct tn_program_set {
  tn_arena arena;
  tn_state_map *map;
  tn_update_plan plan;
  tn_program *programs[TN_PROGRAMS]; /* NULL where not wanted */
  tn_program *list[TN_PROGRAMS];     /* those that exist, as the executor wants them */
  int32_t index[TN_PROGRAMS];        /* into list; -1: none */
  int32_t n;
  tn_measure *measures; /* of step and eval alike */
  int32_t n_measures;
} tn_program_set;

/* Passes of which programs.c can show the graph, before those of tn_compile; ended by NULL. */
extern const char *const tn_graph_passes[];

tn_status tn_programs_compile(tn_run *run, const tn_target *target, const tn_program_request *request,
                              tn_program_set *set);
/* The same, within [run] memory_limit. */
tn_status tn_programs_build(tn_run *run, const tn_target *target, const tn_program_request *request,
                            tn_program_set *set);
void tn_programs_free(tn_run *run, tn_program_set *set);
/* Rebuilds derived state after other state was initialized, loaded or written. */
tn_status tn_programs_refresh(const tn_program_set *set, tn_executor *executor);
int64_t tn_programs_parameters(const tn_program_set *set);
/* Averages running statistics over ranks, before evaluation and saving; on all ranks at once. Does nothing
 * where there is one rank, or nothing to average. */
tn_status tn_programs_average(const tn_program_set *set, tn_executor *executor);

/* Says what falls back, why, and what it costs, where [backend] fallback wants to know (fallback.c). */
void tn_programs_tell_fallbacks(const tn_run *run, const tn_program_set *set);

/* How many input slots a run has: the batches that are read ahead, and those in use: all of an update, which
 * are weighed before the first is differentiated. */
int32_t tn_run_slots(const tn_run *run);

/* Opens the device that the configuration asks for; the one whose number is the run's rank. */
tn_status tn_run_device(tn_run *run, tn_device **device);

static inline int32_t tn_run_ranks(const tn_run *run) { return run->ranks > 1 ? run->ranks : 1; }
/* devices.c: a rank's part of [data] batch. It must divide without rest. */
tn_status tn_run_share(tn_run *run, int32_t split, int64_t *batch);

/* ---- feeder.c: batches from a loader into the slots of an executor ---- */

typedef struct tn_feeder tn_feeder;
/* Feeds `program` of the executor from one split. Names the field that does not fit. */
tn_status tn_feeder_create(tn_run *run, int32_t split, tn_executor *executor, int32_t index,
                           const tn_program *program, int32_t slots, tn_feeder **feeder);
/* What the configuration asks of the loader of a split that reads ahead into so many slots. */
tn_status tn_feeder_options(tn_run *run, int32_t split, int32_t slots, tn_loader_options *options);
/* A split that must be there and is not (TN_EUNAVAILABLE) is like a file that is not: TN_EIO. */
tn_status tn_feeder_required(tn_run *run, tn_status status);
void tn_feeder_destroy(tn_feeder *feeder);
const tn_loader *tn_feeder_loader(const tn_feeder *feeder);
/* Updates in an epoch. */
int64_t tn_feeder_updates(const tn_feeder *feeder);
/* Begins an epoch at an update; all slots are handed to the loader. */
tn_status tn_feeder_start(tn_feeder *feeder, int64_t epoch, int64_t first);
/* The loader stops writing into the slots, so that another may. */
tn_status tn_feeder_rest(tn_feeder *feeder);
/* Waits for the next batch; *samples are the real ones of all ranks. TN_EOF: the epoch is over. */
tn_status tn_feeder_next(tn_feeder *feeder, int32_t *slot, int64_t *samples);
/* Gives a slot back that has been waited for, and whose outputs have been read, for another batch. */
tn_status tn_feeder_return(tn_feeder *feeder, int32_t slot);

/* ---- control.c ---- */

/* Where the control values of a program lie in each slot, found once: a step looks nothing up. */
typedef struct tn_controls {
  const tn_update_plan *plan;
  int64_t **iteration; /* [slot]; NULL: the program does not read it */
  int64_t **block;     /* likewise */
  float **values;      /* [slot * n_controls + control]; NULL: not read */
  int32_t lr;          /* which control is the learning rate; -1: none */
  double base_lr;      /* of group 0 */
} tn_controls;
tn_status tn_controls_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                           const tn_update_plan *plan, tn_controls *controls);
/* Writes the control values of one step into a slot: iteration, the block of the global batch that stands
 * there, and every option times its factor. */
void tn_controls_write(const tn_controls *controls, int32_t slot, int64_t step, int64_t block,
                       double lr_factor);
/* Factor of the learning rate at a step: warm-up times schedule. */
double tn_lr_factor(const tn_settings *settings, int64_t step, int64_t steps, int64_t steps_per_epoch);

/* ---- tally.c: sums of losses and metrics ---- */

/* Where a program leaves the sums of every measure in each slot, found once. */
typedef struct tn_readings {
  const float **sum, **weight; /* [slot * n + measure] */
  int32_t n;
  const float **skipped, **loss_scale; /* [slot]; their elements NULL: the program has no such output */
} tn_readings;
tn_status tn_readings_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                           const tn_program_set *set, tn_readings *readings);

typedef struct tn_tally {
  const tn_measure *measures;
  int32_t n;
  double *sum, *weight;            /* per measure */
  tn_metric *means;                /* n + 1: "loss" first; filled by tn_tally_means */
  int64_t steps, samples, skipped; /* skipped: steps whose update was not applied */
} tn_tally;
tn_status tn_tally_init(tn_arena *arena, const tn_program_set *set, tn_tally *tally);
void tn_tally_reset(tn_tally *tally);
/* Takes over what another has counted, if it is of as many measures. */
void tn_tally_restore(tn_tally *tally, const tn_tally *from);
/* Adds what a program left on a slot: the sums alone of a micro-batch that is not the step's last, or those
 * of the last one with what counts for the whole step. */
void tn_tally_add_part(tn_tally *tally, const tn_readings *readings, int32_t slot);
void tn_tally_add(tn_tally *tally, const tn_readings *readings, int32_t slot, int64_t samples);
/* Means so far, "loss" first: the losses' means with their factors. */
const tn_metric *tn_tally_means(tn_tally *tally);

/* ---- evaluate.c ---- */

typedef struct tn_pass {
  tn_executor *executor;
  int32_t program;
  tn_feeder *feeder;
  const tn_controls *controls;
  const tn_readings *readings;
  int64_t max_batches;       /* 0: all */
  struct tn_rank_set *ranks; /* whose first decides when to stop; NULL: there is one */
} tn_pass;

/* One pass over a feeder's data. `tally` holds the sums afterwards. TN_ESTOPPED: tn_run_stop was called. */
tn_status tn_evaluate(tn_run *run, const tn_pass *pass, tn_tally *tally);

/* ---- weights.c: parameters and other state from and to safetensors ---- */

/* Kinds of state, as masks of 1 << TN_STATE_... */
enum {
  TN_STATES_OF_MODEL = 1 << TN_STATE_PARAM | 1 << TN_STATE_BUFFER,
  TN_STATES_OF_OPTIMIZER = 1 << TN_STATE_SLOT | 1 << TN_STATE_HOST
};

/* A file, what stands in front of its names, and patterns of names that may be missing or left over. */
typedef struct tn_weights_source {
  const char *path, *prefix, *ignore;
  uint32_t kinds;
} tn_weights_source;

/* Reads every state of the kinds. Names in the file and not in the model, or the other way round, are
 * errors unless `ignore` matches them. */
tn_status tn_weights_load(tn_run *run, tn_executor *executor, const tn_state_map *map,
                          const tn_weights_source *source);
/* What --weights or [weights] names, if anything. */
tn_status tn_weights_load_configured(tn_run *run, tn_executor *executor, const tn_state_map *map);
/* An error where nothing does: `command` has no use for a model that was never trained. */
tn_status tn_weights_load_required(tn_run *run, tn_executor *executor, const tn_state_map *map,
                                   const char *command);
/* What a file was when it was written. */
typedef struct tn_file_sum {
  uint64_t bytes;
  uint32_t crc; /* CRC-32C */
} tn_file_sum;

/* Writes the states whose kind is in the mask (1 << TN_STATE_...), sorted by path. */
tn_status tn_weights_save(tn_run *run, tn_executor *executor, const tn_state_map *map, uint32_t kinds,
                          const char *path, tn_file_sum *sum);

/* ---- checkpoint.c ---- */

/* Where a run stands; state.json. */
typedef struct tn_progress {
  int64_t step, epoch, batch; /* steps done; the next batch is number `batch` of `epoch` */
  double best;                /* value of the best checkpoint so far; NaN: none */
  double seconds;             /* spent before this process */
  bool ended;                 /* what ends an epoch, validation above all, is done for this step */
  tn_tally tally;             /* of the epoch so far: counts and sums only; borrowed */
} tn_progress;

/* Writes FOLDER/checkpoints/NAME whole or not at all: into a temporary folder, synced, exchanged. */
tn_status tn_checkpoint_save(tn_run *run, tn_executor *executor, const tn_program_set *set,
                             const char *folder, const char *name, const tn_progress *progress);
/* Loads the newest valid checkpoint of FOLDER, whatever interrupted its writing. One that is damaged or of
 * another model is named in the log and kept beside under another name. Afterwards checkpoints/last is what
 * was loaded. TN_EINVAL, with everything left as it is, when none is valid. */
tn_status tn_checkpoint_resume(tn_run *run, tn_executor *executor, const tn_program_set *set,
                               const char *folder, tn_progress *progress);

/* ---- folder.c: run folders ---- */

/* OUTPUT/NAME, or NAME-2, -3 ... where it exists; made with config.ini inside. Caller's (tn_release);
 * NULL when nothing is to be written. */
tn_status tn_run_folder_make(tn_run *run, char **folder);
/* The folder that `resume` means: itself, or for "auto" the newest OUTPUT/NAME* with a checkpoint. */
tn_status tn_run_folder_resume(tn_run *run, char **folder);

/* ---- watch.c: observers on a thread of their own ---- */

typedef struct tn_watch tn_watch;
tn_status tn_watch_start(tn_run *run, const tn_run_info *info, tn_watch **watch);
/* Copies the event and takes no lock. A step is dropped when the queue is full; other events wait. */
void tn_watch_post(tn_watch *watch, const tn_event *event);
/* Waits until the observers have heard what was posted so far. */
void tn_watch_flush(tn_watch *watch);
/* Hands over what is queued, closes the observers. */
void tn_watch_stop(tn_watch *watch);

#endif
