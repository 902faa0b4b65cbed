/* core/step/programs/programs.h: the compiled programs of a run, over one state map. */
#pragma once

#include "core/compile/pipeline.h"
#include "core/exec/executor.h"
#include "core/step/graphs/training_graph.h"
#include "core/run/run.h"

enum {
  TN_PROGRAM_INIT = 0,
  TN_PROGRAM_STEP = 1,
  TN_PROGRAM_EVAL = 2,
  TN_PROGRAM_PREDICT = 3,
  TN_PROGRAM_REFRESH = 4, /* rebuilds low-precision copies; absent if there are no copies */
  /* With several micro-batches per update: WEIGH sums the sample weights of all of them, MICRO accumulates
   * the gradients of all but the last, and STEP runs on the last. They share the input slots of STEP. */
  TN_PROGRAM_WEIGH,
  TN_PROGRAM_MICRO,
  TN_PROGRAM_AVERAGE, /* averages running statistics over ranks */
  TN_PROGRAM_MEAN,    /* copies or adds the state to the averages of [optimizer] ema or swa_from */
  TN_PROGRAM_PRUNE,   /* chooses the weights that [prune] makes zero */
  /* The model for a few tokens at a time, with caches of keys and values (incremental.h): PREFILL takes
   * several tokens of a prompt, DECODE one. Their batch is the number of tokens, of one text; at most the
   * window. */
  TN_PROGRAM_PREFILL,
  TN_PROGRAM_DECODE,
  TN_PROGRAM_WATCH,   /* a STEP that also has the numbers of [run] watch, and takes its place in watched steps
                       */
  TN_PROGRAM_SAMPLES, /* PREDICT for [run] samples, with classes in place of scores (sample_outputs.h) */
  /* STEP, MICRO, AVERAGE and WATCH of the later phases, of [group.NAME] freeze = N or [phase NAME]
   * (tn_phase_program); those above are of the first one. All phases have the same state and input slots. */
  TN_PROGRAM_LATER,
  TN_PHASE_PROGRAMS = 4,
  /* STEP, EVAL and MICRO of the shorter [model] lengths, or of the smaller [model] sizes, which have no EVAL
   * (tn_length_program); those above are of the longest one. All have the same state and input slots. */
  TN_PROGRAM_SHORTER = TN_PROGRAM_LATER + TN_PHASE_PROGRAMS * (TN_MAX_PHASES - 1),
  TN_LENGTH_PROGRAMS = 3,
  TN_PROGRAMS = TN_PROGRAM_SHORTER + TN_LENGTH_PROGRAMS * (TN_MAX_LENGTHS - 1)
};

/* The number of STEP, MICRO, AVERAGE or WATCH in a phase, counted from 0. */
int32_t tn_phase_program(int32_t which, int32_t phase);
/* STEP, EVAL or MICRO of length k, counted from 0, of [model] lengths or sizes. */
int32_t tn_length_program(const tn_settings *settings, int32_t which, int32_t k);

/* The program of the step whose inputs are those of all training programs. */
int32_t tn_input_program(const tn_settings *settings);

/* The requested programs, and their batch sizes on one rank and for one micro-batch. WEIGH and MICRO come
 * with STEP, and WATCH and SAMPLES where they are asked for, MEAN where it has averages; AVERAGE comes with
 * STEP or EVAL. */
typedef struct tn_program_request {
  int64_t batch[TN_PROGRAMS]; /* 0: not requested (INIT always is) */
  /* The loaders of the splits (TN_SPLIT_...). Programs of a split apply the transforms that its loader leaves
   * to the device. NULL: the program takes the fields that the model declares. They outlive the programs. */
  const tn_loader *loaders[2];
  /* STEP and EVAL also have the outputs of the model, which are copied to the host in every run, and not the
   * measures alone. */
  bool model_outputs;
  bool watched; /* WATCH beside STEP and SAMPLES beside EVAL, where [run] watch and samples ask for them */
  bool all_lengths; /* STEP and EVAL of every length, and not of the longest one alone */
  int64_t length;   /* of PREDICT; 0: the longest one */
  const tn_compile_options *dump;
  const struct tn_mapped_states *mapped; /* of a request without STEP, which they outlive; NULL: none */
  int64_t arena_limit;                   /* most bytes of an arena; 0: no limit */
  /* Large parameters that no update changes stay in memory of the host and are streamed, but for so many
   * bytes of them (streamed_states.h). */
  bool stream;
  int64_t kept_bytes;
  bool host_optimizer; /* with [optimizer] place = auto: parameters and optimizer state are on the host */
  const struct tn_recorded_choices
      *choices; /* recorded by an earlier run and to be repeated; NULL: choose anew */
  /* For tn_programs_open: the input slots of the executor, or a function of `context` that counts them after
   * the programs are compiled, where their number depends on the programs. */
  int32_t slots;
  int32_t (*count_slots)(void *context);
  void *context;
} tn_program_request;

typedef struct tn_program_set {
  tn_arena arena;
  tn_state_map *map;
  const tn_loader *loaders[2]; /* as requested */
  const tn_freeze *freeze;     /* the run's */
  bool host_optimizer;         /* parameters and optimizer state are on the host */
  bool either_place;     /* with [optimizer] place = auto: the updates of both places have the same bits */
  tn_update_info update; /* of the only phase, or of all of [group.NAME] freeze = N */
  tn_update_info turns[TN_MAX_PHASES];          /* of each [phase NAME] (tn_phase_update) */
  tn_watched_parameters watched[TN_MAX_PHASES]; /* of the WATCH of each phase */
  tn_program *programs[TN_PROGRAMS];            /* NULL: not requested */
  tn_program *list[TN_PROGRAMS];                /* the compiled ones, for the executor */
  int32_t index[TN_PROGRAMS];                   /* into list; -1: not compiled */
  int32_t n;
  tn_measure *measures; /* of STEP and EVAL */
  int32_t n_measures;
  /* Of STEP, or of PREDICT where the step is not requested: */
  int64_t samples;    /* in a run of the program */
  int64_t window;     /* of PREFILL and DECODE: the tokens that the caches have room for */
  double fused_bytes; /* that it moves if everything but its products is fused */
} tn_program_set;

/* The scheduled options of the update of a phase. */
const tn_update_info *tn_phase_update(const tn_program_set *set, const tn_settings *settings, int32_t phase);

/* The passes of program_graph.c and programs.c, which precede those of tn_compile; NULL-terminated. */
extern const char *const tn_graph_passes[];

tn_status tn_programs_compile(tn_run *run, const tn_target *target, const tn_program_request *request,
                              tn_program_set *set);
/* compile_within_limit.c: compiles within [run] memory_limit and the memory of the device, repeats recorded
 * choices, and reports fallbacks. A failure names the largest batch that fits. */
tn_status tn_programs_build(tn_run *run, const tn_target *target, const tn_program_request *request,
                            tn_program_set *set);
/* Whether [optimizer] place may put states in memory of the host: the device has memory of its own and a
 * fallback, trains alone, and the optimizer updates each element by itself. */
bool tn_programs_can_place(const tn_run *run, const tn_target *target);
/* Whether [run] offload may stream weights to the device: the device has memory of its own and a fallback,
 * which makes initial values, and there are parameters that no update changes. */
bool tn_programs_can_stream(const tn_run *run, const tn_target *target, const tn_program_request *request);
/* With place = host, TN_EINVAL where it may not, with the line. A device that computes in memory of the host
 * has one place. */
tn_status tn_programs_check_place(tn_run *run, const tn_target *target);
/* Whether [run] memory_limit and the memory of the device are enough for the programs and so many input
 * slots. */
bool tn_programs_fit(const tn_run *run, const tn_target *target, const tn_program_set *set, int32_t slots);
/* open_programs.c: builds the programs and an executor of them, whose messages go to `env`. The set is to be
 * freed after a failure, too. */
tn_status tn_programs_open(tn_run *run, tn_env *env, tn_device *device, const tn_program_request *request,
                           tn_program_set *set, tn_executor **executor);
void tn_programs_free(tn_run *run, tn_program_set *set);
/* The output of the model that scores and texts are read from: "output", else the first one. NULL: the
 * program has none. */
const tn_binding *tn_program_main_output(const tn_program *program);
/* Rebuilds the low-precision copies after parameters were initialized, loaded or written. */
tn_status tn_programs_refresh(const tn_program_set *set, tn_executor *executor);
/* The number of parameters that are trained in an epoch, and of frozen ones; without STEP all count as
 * trained. */
int64_t tn_programs_parameters(const tn_program_set *set, int64_t epoch);
int64_t tn_programs_frozen(const tn_program_set *set, int64_t epoch);
/* The hash of the plans of all programs. */
uint64_t tn_programs_hash(const tn_program_set *set);
/* Averages the running statistics that a phase changes over ranks, before evaluation and saving; on all ranks
 * at once. Without an AVERAGE program this does nothing. */
tn_status tn_programs_average(const tn_program_set *set, tn_executor *executor, int32_t phase);

/* Makes the averages means of so many moments, this one included: of [optimizer] swa_from, and in the
 * beginning with 0 of `ema`, too, where they become copies. A mean that has so many moments already stays as
 * it is. Without averages this does nothing. */
tn_status tn_programs_update_mean(const tn_program_set *set, tn_executor *executor, int64_t moments);

/* Chooses the weights that are zero, as a share of those of [prune]. */
tn_status tn_programs_prune(const tn_program_set *set, tn_executor *executor, float sparsity);

/* report_fallbacks.c: [backend] fallback = warn logs each op on the fallback backend, the reason and the
 * cost. */
void tn_programs_report_fallbacks(const tn_run *run, const tn_program_set *set);

/* The number of input slots: the batches that are read ahead, and all micro-batches of an update; with
 * several steps a launch, whole groups of so many slots: two that are launched, and those that are read
 * ahead. */
int32_t tn_run_input_slots(const tn_run *run, int32_t steps_per_launch);
/* The most that `auto` may need: programs of the training step are compiled before it is decided. */
int32_t tn_run_most_input_slots(const tn_run *run);
/* [run] steps_per_launch, with 1 for auto. */
int32_t tn_run_steps_per_launch(const tn_run *run);
