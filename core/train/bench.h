/* core/train/bench.h: what bench.c and bench_launches.c share. */
#ifndef TN_CORE_TRAIN_BENCH_H
#define TN_CORE_TRAIN_BENCH_H

#include "core/train/result.h"

typedef struct tn_bench {
  tn_run *run;
  tn_bench_options options;
  int64_t batch;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  int32_t which, index; /* the program: TN_PROGRAM_..., and in the executor */
  double first_step_s;
  double *round_ms;
} tn_bench;

/* One step, waited for. */
tn_status tn_bench_step(tn_bench *b);
/* Sorts times and returns [min, median, max]; NULL: out of memory. */
json_t *tn_bench_spread(double *ms, int32_t n);

/* ---- bench_launches.c ---- */

/* Runs the program rounds * steps times more, launch by launch, and sets in `result`: launches: [{name, op,
 * kernel, backend, dtype, layout, flops, bytes, ms: [min, median, max]}] in their order, bytes being those of
 * operands and results, each once; launched_ms, the sum of the medians; between_ms, the median of what a step
 * took beside its launches; launched_step_ms: [min, median, max] of these steps. */
tn_status tn_bench_launches(tn_bench *b, json_t *result);

#endif
