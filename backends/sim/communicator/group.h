/* backends/sim/communicator/group.h: devices that compute together: who is there, how far each has come, and
 * the failure that all of them hear of. */
#ifndef TN_BACKENDS_SIM_COMMUNICATOR_GROUP_H
#define TN_BACKENDS_SIM_COMMUNICATOR_GROUP_H

#include <pthread.h>

#include "backends/sim/sim.h"

enum { TN_SIM_RANKS = 64 }; /* at most */

/* How far a rank has come: each counts collectives. */
enum { TN_SIM_ARRIVED, TN_SIM_HALFWAY, TN_SIM_FINISHED, TN_SIM_STAGES };

typedef struct tn_sim_group tn_sim_group;

/* A rank's. */
typedef struct tn_sim_part {
  tn_sim_group *group;
  int32_t rank;
  double timeout_s;
  tn_sim_device *device; /* NULL: not here yet, or gone */
  uint64_t begun;        /* the engine's */
  tn_collective call;    /* what it has arrived at; others read it until all are finished */
  _Atomic(uint64_t) reached[TN_SIM_STAGES];
} tn_sim_part;

struct tn_sim_group {
  pthread_mutex_t lock; /* of devices, counts, and the text */
  pthread_cond_t changed;
  int32_t ranks, present, left;
  tn_sim_part parts[TN_SIM_RANKS];
  atomic_bool failed;
  char text[256];
};

tn_status tn_sim_group_new(tn_env *env, tn_sim_group **group);
/* Takes a place and waits until all ranks have. TN_ECOMM when one does not come in time; then the place is
 * given back. */
tn_status tn_sim_group_enter(tn_sim_group *group, tn_env *env, tn_sim_device *device, int32_t rank,
                             int32_t ranks, double timeout_s, tn_sim_part **part);
/* The last to leave frees what all have shared. */
void tn_sim_group_leave(tn_sim_part *part, tn_env *env);

/* Has all engines and waiting hosts look again. The lock must be held. */
void tn_sim_group_wake(tn_sim_group *group);
/* The first failure is the one that is told. */
void tn_sim_group_fail(tn_sim_group *group, const char *text);
tn_status tn_sim_group_status(tn_sim_group *group, tn_env *env);

/* ---- collective.c ------------------------------------------------------------------------------- */

/* "all_reduce". */
const char *tn_sim_collective_name(int32_t what);
/* Enqueues the rank's part of a collective that has been checked; the result has `to_count` elements. */
tn_status tn_sim_collective_push(tn_sim_part *part, tn_env *env, const tn_collective *what, int64_t to_count,
                                 void *stream);

#endif
