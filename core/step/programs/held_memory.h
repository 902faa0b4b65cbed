/* core/step/programs/held_memory.h: what the memory of a plan is for. */
#pragma once

#include "core/step/programs/programs.h"

/* The size of the largest arena; the programs of a run share one. */
int64_t tn_largest_arena(const tn_program_set *set);

/* "state 1.2 MiB, arena 30.5 MiB, inputs and outputs 0.4 MiB; in the arena: 8.0 MiB of conv2d of conv1, ..."
 * of a plan of `needed` bytes, with the largest results and workspaces of the arena. "": no memory. */
const char *tn_held_memory_text(tn_arena *arena, const tn_program_set *set, int64_t needed);
