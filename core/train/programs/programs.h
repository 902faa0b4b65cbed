/* core/train/programs/programs.h: the compiled programs of a run, over one map of the state. */
#ifndef TN_CORE_TRAIN_PROGRAMS_PROGRAMS_H
#define TN_CORE_TRAIN_PROGRAMS_PROGRAMS_H

#include "core/exec/executor.h"
#include "core/train/graphs/training_graph.h"
#include "core/train/run.h"

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
  int64_t arena_limit;             /* bytes that no arena should exceed; 0: no limit */
  const struct tn_replay *choices; /* of an earlier compilation, to be made again; NULL: choose anew */
} tn_program_request;

typedef struct tn_program_set {
  tn_arena arena;
  tn_state_map *map;
  tn_update_info update;
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
/* The number of trained parameters. */
int64_t tn_programs_parameters(const tn_program_set *set);
/* The plans of all programs as one hash. */
uint64_t tn_programs_hash(const tn_program_set *set);
/* Averages running statistics over ranks, before evaluation and saving; on all ranks at once. Does nothing
 * where there is one rank, or nothing to average. */
tn_status tn_programs_average(const tn_program_set *set, tn_executor *executor);

/* Says what falls back, why, and what it costs, where [backend] fallback wants to know (fallback.c). */
void tn_programs_report_fallbacks(const tn_run *run, const tn_program_set *set);

/* How many input slots a run has: the batches that are read ahead, and those in use: all of an update, which
 * are weighed before the first is differentiated. */
int32_t tn_run_input_slots(const tn_run *run);

#endif
