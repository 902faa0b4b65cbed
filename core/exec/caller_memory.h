/* core/exec/caller_memory.h: a program run on the caller's memory: where each input and output lies is said
 * at every run, and nothing is copied. Device addresses; a run only enqueues. */
#ifndef TN_CORE_EXEC_CALLER_MEMORY_H
#define TN_CORE_EXEC_CALLER_MEMORY_H

#include "core/exec/executor.h"

typedef struct tn_outside tn_outside;

/* Of a program without state. As many runs may be under way as there are `slots`; one more waits for the
 * oldest. Device, map and program are borrowed. */
tn_status tn_outside_create(tn_env *env, tn_device *device, const tn_state_map *map, tn_program *program,
                            int32_t slots, tn_outside **outside);
void tn_outside_destroy(tn_outside *outside);

/* Addresses in the order of program->inputs and ->outputs; NULL for what is empty. An output may share
 * memory with nothing else. */
tn_status tn_outside_run(tn_outside *outside, void *const *inputs, void *const *outputs);

#endif
