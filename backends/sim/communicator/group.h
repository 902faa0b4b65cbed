/* backends/sim/communicator/group.h: the state that the ranks of a communicator share: members, progress of
 * each rank, and the first failure. */
#pragma once

#include <pthread.h>

#include "backends/sim/sim.h"

enum { TN_SIM_RANKS = 64 }; /* at most */

/* Stages of a collective. reached[stage] is the number of the last collective whose stage a rank has reached.
 */
enum { TN_SIM_ARRIVED, TN_SIM_HALFWAY, TN_SIM_FINISHED, TN_SIM_STAGES };

typedef struct tn_sim_group tn_sim_group;

/* A rank. */
typedef struct tn_sim_part {
  tn_sim_group *group;
  int32_t rank;
  double timeout_s;
  const tn_comm_place *place; /* the host's */
  bool silent; /* the rank's failed collectives end as if they were done (TN_SIM_FAILS_STATUS) */
  const tn_comm_device *device; /* the host's, from which `run` gets the handle of a stream */
  const tn_sim_native *native;  /* of the device; NULL: not entered, or left */
  double arrived_s;             /* of a rehearsal: when the rank came to the current collective */
  uint64_t begun;               /* the engine's: number of collectives begun */
  tn_collective call;           /* the current collective; other ranks read it until all have finished */
  bool replayed;                /* it runs in a replay */
  _Atomic(uint64_t) reached[TN_SIM_STAGES];
  char name[64]; /* of the current collective; under the group's lock */
} tn_sim_part;

struct tn_sim_group {
  pthread_mutex_t lock; /* of devices, counts, and the text */
  pthread_cond_t changed;
  int32_t ranks, present, left;
  tn_sim_part parts[TN_SIM_RANKS];
  atomic_bool failed, aborted;
  char text[256];
};

/* Where a failed collective shows: as failed work of its stream, or in `status` alone. */
enum { TN_SIM_FAILS_STREAM = 0, TN_SIM_FAILS_STATUS = 1 };

typedef struct tn_sim_group_options {
  int32_t failure; /* TN_SIM_FAILS_... */
} tn_sim_group_options;

tn_status tn_sim_group_new(tn_env *env, tn_sim_group **group);
/* Enters as a rank and waits until all ranks have entered. `from` has the rank's number, time limit and
 * devices. TN_ECOMM: a rank does not enter in time, or the run has failed; then this one leaves. */
tn_status tn_sim_group_enter(tn_env *env, tn_sim_group *group, const tn_sim_part *from, int32_t ranks,
                             tn_sim_part **part);
/* The last rank that leaves frees the group. */
void tn_sim_group_leave(tn_env *env, tn_sim_part *part);

/* Wakes all engines and waiting hosts. The lock must be held. */
void tn_sim_group_wake(tn_sim_group *group);
/* Records a failure; later ones are dropped. */
void tn_sim_group_fail(tn_sim_group *group, const char *text);
/* Ends what waits for other ranks, and what stalls. */
void tn_sim_group_abort(tn_sim_group *group, int32_t rank);
tn_status tn_sim_group_status(tn_env *env, tn_sim_group *group);

/* ---- collective.c ------------------------------------------------------------------------------- */

/* Enqueues the rank's part of a checked collective on the handle's stream; the result has `to_count`
 * elements. */
tn_status tn_sim_collective_push(tn_env *env, tn_sim_part *part, const tn_collective *call, int64_t to_count,
                                 const tn_sim_native *native);
