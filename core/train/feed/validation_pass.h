/* core/train/feed/validation_pass.h: one pass over data without training. */
#pragma once

#include "core/distributed/ranks/ranks.h"
#include "core/train/feed/feeder.h"
#include "core/step/values/control_block.h"
#include "core/step/values/metric_sums.h"

typedef struct tn_validation {
  tn_executor *executor;
  int32_t program;
  tn_feeder *feeder;
  const tn_control_block *control_block;
  const tn_measure_outputs *outputs;
  int64_t max_batches;       /* 0: all batches */
  struct tn_rank_set *ranks; /* rank 0 decides when to stop; NULL: there is one rank */
  /* Called after each batch with the number of batches so far; NULL: no call. */
  void (*progress)(void *context, int64_t batches);
  void *context;
} tn_validation;

/* Runs one pass; `sums` holds the sums afterwards. TN_ESTOPPED: tn_run_stop was called. */
tn_status tn_validation_run(tn_run *run, const tn_validation *pass, tn_metric_sums *sums);
