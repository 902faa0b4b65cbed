/* core/train/feed/validation_pass.h: one pass over data without training. */
#pragma once

#include "core/distributed/ranks/ranks.h"
#include "core/train/feed/feeder.h"
#include "core/step/values/control_block.h"
#include "core/step/values/metric_sums.h"

/* The evaluation program of a length. */
typedef struct tn_validation_program {
  int32_t index; /* in the executor */
  tn_control_block control_block;
  tn_measure_outputs outputs;
} tn_validation_program;

typedef struct tn_validation {
  tn_executor *executor;
  const tn_validation_program *programs; /* of all lengths */
  tn_feeder *feeder;
  int64_t max_batches;       /* 0: all batches */
  struct tn_rank_set *ranks; /* rank 0 decides when to stop; NULL: there is one rank */
  /* Called after each batch with the number of batches so far; NULL: no call. */
  void (*progress)(void *context, int64_t batches);
  void *context;
} tn_validation;

/* Binds the programs of all lengths of a set, TN_MAX_LENGTHS at most; of [model] sizes, the largest alone. */
tn_status tn_validation_bind(const tn_run *run, tn_program_set *set, tn_executor *executor, int32_t slots,
                             tn_validation_program *programs);
/* Runs one pass; `sums` holds the sums afterwards. TN_ESTOPPED: tn_run_stop was called. */
tn_status tn_validation_run(tn_run *run, const tn_validation *pass, tn_metric_sums *sums);
