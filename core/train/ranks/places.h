/* core/train/ranks/places.h: the places of a run's ranks, for the commands that run on several: the
 * process among those that a launcher has started, the link to the others, the communicator of a rank. */
#pragma once

#include <stdatomic.h>

#include "core/exec/collective.h"
#include "core/exec/device/device.h"
#include "core/distributed/ranks/ranks.h"
#include "core/step/programs/programs.h"
#include "core/run/run.h"

/* Reads the place of this process, and checks it against [distributed] processes. Where there are several,
 * run->place is `place` afterwards. Processes other than the first log errors alone. */
tn_status tn_run_find_place(tn_run *run, tn_process_place *place);
/* Joins the other processes, after run->locals has been set: sets run->rank, that of the process's first
 * rank, and run->ranks. *link is the caller's; NULL: there is one process. */
tn_status tn_run_join(tn_run *run, const tn_process_place *place, tn_link **link);

/* Called once in each process, before tn_ranks_run. Process 0 makes the choices of kernels, also by
 * measurements, and tells them after it has compiled; the others hear them before they do, and repeat them
 * (run->recorded_choices). */
tn_status tn_run_tell_choices(tn_run *run, tn_rank_set *ranks, const tn_device *device,
                              const tn_program_set *set, int32_t slots);
tn_status tn_run_hear_choices(tn_run *run, tn_rank_set *ranks);

/* A rank that opens its communicator. */
typedef struct tn_comm_opening {
  tn_run *run; /* of the rank */
  tn_device *device;
  const tn_process_place *place;
  const tn_link *link; /* NULL: there is one process */
  tn_rank_set *ranks;
  const tn_communicator *kind;
  const void *options;
} tn_comm_opening;

/* On the thread of the rank, on all ranks at once: rank 0 makes the identity of the communicator, and all
 * open it. The device gets the rank's flight recorder. *comm is set as soon as it can be aborted, on failure
 * too; the caller closes it. */
tn_status tn_run_open_comm(const tn_comm_opening *opening, _Atomic(tn_comm *) *comm);

/* The communicators of the ranks of this process. */
typedef struct tn_rank_comms {
  tn_run *run;
  /* That of rank number `local`, counted from 0; from any thread. NULL: it is not open. */
  tn_comm *(*of)(const void *ranks, int32_t local);
  const void *ranks;
  int32_t n;
} tn_rank_comms;
/* A watch, with the limits of [distributed], whose context is `comms`: they are asked whether they are well
 * and where they are, and aborted. A rank's host asks in its own waits too; elsewhere, as in a launch for
 * which its device has no room, it cannot. */
tn_rank_watch tn_rank_comms_watch(tn_rank_comms *comms);
void tn_rank_comms_abort(void *comms);

/* Makes `copy` the run of another rank of this process: with messages and memory of its own; the
 * configuration as read so far is shared. Rank 0 alone logs warnings about the configuration. */
void tn_run_copy_for_rank(const tn_run *run, int32_t local, tn_run *copy);
void tn_run_free_copy(tn_run *copy);
