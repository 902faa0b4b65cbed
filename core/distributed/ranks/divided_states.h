/* core/distributed/ranks/divided_states.h: states in regions that are divided among ranks
 * (core/compile/state_map.h), read and written as a whole by rank 0, which alone has files. */
#pragma once

#include "core/exec/executor.h"
#include "core/distributed/ranks/ranks.h"

typedef struct tn_divided_access {
  tn_rank_set *ranks;
  tn_env *env; /* of messages: that of the executor */
  int32_t rank;
  tn_executor *executor;
  const tn_state_map *map;
} tn_divided_access;

/* Runs `body` on rank 0 and returns its status there. Meanwhile the other ranks hand over and take the parts
 * of the states that it reads and writes by tn_executor_read and tn_executor_write, and return when it has
 * ended. An exchange is of 8 MiB at most, or of 4 KiB for each rank. Where no region is
 * divided the other ranks return at once. */
tn_status tn_divided_run(const tn_divided_access *access, tn_status (*body)(void *context), void *context);
