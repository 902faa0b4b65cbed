/* core/exec/caller_memory.h: a program on memory of the caller. Every run names the device addresses of
 * inputs and outputs. A run only enqueues launches; it copies nothing. */
#pragma once

#include "core/exec/executor.h"

typedef struct tn_caller_program tn_caller_program;

/* The program has no state. Up to `slots` runs may be under way; the next one waits for the oldest. Device,
 * map and program are borrowed. */
tn_status tn_caller_program_create(tn_env *env, tn_device *device, const tn_state_map *map,
                                   tn_program *program, int32_t slots, tn_caller_program **created);
void tn_caller_program_destroy(tn_caller_program *program);

/* Addresses in the order of tn_program.inputs and .outputs; NULL for an empty tensor. The memory of an output
 * overlaps with no other input or output. */
tn_status tn_caller_program_run(tn_caller_program *program, void *const *inputs, void *const *outputs);
