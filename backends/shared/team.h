/* backends/shared/team.h: persistent threads for parallel loops, behind tn_parallel. */
#pragma once

#include <stdbool.h>

#include "tenon/plugin/backend.h"

typedef struct tn_team tn_team;

/* A team of `threads` >= 1, the calling thread included. Idle threads spin for a moment, then sleep. Thread i
 * is bound to processor pin[i], if there is one; the calling thread is thread 0 and is not bound here. The
 * handle must outlive the team. Messages begin with `name`, the backend's. */
tn_status tn_team_create(tn_env *env, const char *name, int32_t threads, const tn_ints *pin, tn_team **team);
void tn_team_destroy(tn_team *team);

/* Calls body(arg, chunk) for chunk 0 .. chunks-1 and returns when all are done. The assignment of chunks to
 * threads is arbitrary. A call while the team is busy, from inside a body or from another thread, runs all
 * chunks on its own thread. */
void tn_team_run(tn_team *team, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg);

/* The number of spins of later waits, after some of `spins`: the least where a thread of the team has been
 * preempted during them, else a few more, up to a limit. */
int32_t tn_team_next_spins(int32_t spins, bool preempted);
