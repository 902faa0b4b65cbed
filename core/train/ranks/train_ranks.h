/* core/train/ranks/train_ranks.h: the ranks of this process in a training: their devices, their place
 * among the processes of the run, the communicator between all of them. */
#pragma once

#include "core/distributed/ranks/ranks.h"
#include "core/train/loop/training.h"

/* The ranks of this process. */
typedef struct tn_train_ranks {
  tn_run *run;        /* of the first rank, the caller's */
  tn_run *other_runs; /* of the others */
  tn_process_place place;
  tn_link *link; /* NULL: there is one process */
  tn_rank_set *ranks;
  tn_training *trainings;
  tn_status *outcomes; /* per rank */
  int32_t n;
  const tn_communicator *communicator; /* NULL: there is one rank */
  const void *options;
  double started_s;
} tn_train_ranks;

/* Opens the devices, joins the other processes, and compiles. tn_train_ranks_release follows, on failure too.
 */
tn_status tn_train_ranks_prepare(tn_train_ranks *all);
/* Trains; returns the outcome of the first rank of this process. tn_ranks_failure has that of the run. */
tn_status tn_train_ranks_run(tn_train_ranks *all);
/* Frees `all`, unless a thread has been left that may use it. `status` is the outcome of the training, which
 * is returned, or TN_ECOMM where another process has failed behind its last step. */
tn_status tn_train_ranks_release(tn_train_ranks *all, tn_status status);

/* A failure of training. Before the first step only rank 0 reads weights, so that the other ranks must be
 * told. */
bool tn_train_is_nonfinite(const tn_training *t, tn_status status);
