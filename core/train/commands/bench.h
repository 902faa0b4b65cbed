/* core/train/commands/bench.h: what bench.c and bench_launches.c share. */
#ifndef TN_CORE_TRAIN_COMMANDS_BENCH_H
#define TN_CORE_TRAIN_COMMANDS_BENCH_H

#include "core/train/result.h"

/* One of the programs that are run, one after the other, in a step. */
typedef struct tn_bench_pass {
  int32_t which; /* TN_PROGRAM_... */
  int32_t slot;  /* of its micro-batch */
  bool again;    /* the slot's inputs are on the device already */
} tn_bench_pass;

typedef struct tn_bench {
  tn_run *run;
  tn_bench_options options;
  int64_t batch; /* of a micro-batch */
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  int32_t which; /* TN_PROGRAM_STEP, or TN_PROGRAM_PREDICT */
  int32_t micro_batches, n_passes;
  tn_bench_pass *passes; /* in the set's arena */
  double first_step_s;
  double *round_ms;
} tn_bench;

/* One step, waited for: of several micro-batches, all of them and the update. */
tn_status tn_bench_step(tn_bench *b);
/* One pass of it, not waited for. */
tn_status tn_bench_run(tn_bench *b, const tn_bench_pass *pass);
/* Sorts times and returns [min, median, max]; NULL: out of memory. */
json_t *tn_bench_spread(double *ms, int32_t n);

/* ---- bench_launches.c ---- */

/* Runs the step rounds * steps times more, launch by launch, and sets in `result`: launches: [{name, op,
 * kernel, backend, dtype, layout, flops, bytes, ms: [min, median, max]}] in their order, bytes being those of
 * operands and results, each once; where several micro-batches make a step, also program and runs, how often
 * a step runs it: flops, bytes and ms are those of all runs together; launched_ms, the sum of the medians;
 * between_ms, the median of what a step took beside its launches; launched_step_ms: [min, median, max] of
 * these steps. */
tn_status tn_bench_launches(tn_bench *b, json_t *result);

#endif
