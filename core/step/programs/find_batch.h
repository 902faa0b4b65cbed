/* core/step/programs/find_batch.h: the largest batch whose plan fits: [data] batch = auto. */
#pragma once

#include "core/step/programs/programs.h"

/* Batches above this one are multiples of it. */
enum { TN_BATCH_UNIT = 8 };

typedef struct tn_batch_search {
  tn_run *run;
  const tn_target *target;
  tn_program_request
      request;  /* the batch of STEP and, where it is above 0, of EVAL are those that are tried */
  int64_t most; /* no larger batch is tried; of EVAL: most_eval */
  int64_t most_eval;
} tn_batch_search;

typedef struct tn_found_batch {
  int64_t batch, bytes; /* of the plan */
  int64_t limit;        /* of the memory */
  int32_t plans;        /* that were made */
} tn_found_batch;

/* Plans with estimates and without rematerialization. The memory is [run] memory_limit, and nine tenths of
 * that of the device which is not in use. TN_ENOMEM: a batch of 1 does not fit; another status: a plan for it
 * cannot be made. */
tn_status tn_find_batch(const tn_batch_search *search, tn_found_batch *found);

/* Puts the number in place of `auto`, in the settings of both splits and in the configuration. */
tn_status tn_put_batch(tn_run *run, int64_t batch);
