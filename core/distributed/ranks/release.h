/* core/distributed/ranks/release.h: the order in which the ranks of a process release their devices. */
#pragma once

#include "core/exec/collective.h"
#include "core/exec/executor.h"

/* The objects of a rank on its device; each may be NULL. */
typedef struct tn_rank_handles {
  tn_executor *executor;
  tn_comm *comm;
  tn_device *device;
} tn_rank_handles;

/* Destroys all executors of n ranks, then closes all communicators, then destroys all devices. The last
 * ncclCommDestroy of a process waits for the captures of all its ranks, and frees memory on all their
 * devices. `of` tells what rank number `local`, counted from 0, has. */
void tn_ranks_release_devices(tn_rank_handles (*of)(const void *context, int32_t local), const void *context,
                              int32_t n);
