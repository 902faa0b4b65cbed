/* core/compile/rematerialization/memory_limit.h: memory_limit: values are made again, block by block, until
 * the arena fits. */
#ifndef TN_CORE_COMPILE_REMATERIALIZATION_MEMORY_LIMIT_H
#define TN_CORE_COMPILE_REMATERIALIZATION_MEMORY_LIMIT_H

#include "core/compile/memory/memory_plan.h"

/* Rewrites the cover so that the arena of its plan takes at most `limit` bytes, or where that cannot be had
 * as few as can. Does nothing where it fits as it is. */
tn_status tn_pass_limit(tn_env *env, tn_cover *cover, const tn_state_map *map, int64_t limit);

#endif
