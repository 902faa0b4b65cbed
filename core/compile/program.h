/* core/compile/program.h: a compiled program: steps in launch order, cut into segments. It is immutable,
 * contains no addresses and needs no device; the executor (core/exec) binds it. */
#pragma once

#include "core/compile/layout/layout.h"
#include "core/compile/live_memory.h"
#include "core/compile/segment.h"
#include "core/compile/select/cover.h"
#include "core/compile/state_map.h"
#include "core/compile/step.h"

typedef struct tn_program {
  tn_env *env;
  tn_arena memory;  /* holds all arrays and texts of the program */
  const char *name; /* "step", "eval" */
  tn_cover *cover;  /* owned */
  tn_step *steps;   /* of every run; then those of constants, which are launched once */
  int32_t n_steps, n_constants;
  tn_segment *segments; /* together they are all steps of a run */
  int32_t n_segments;
  tn_binding *inputs, *outputs;
  int32_t n_inputs, n_outputs;
  int64_t arena_bytes;        /* size of the planned arena */
  tn_live_memories live;      /* the blocks of the arena */
  int64_t constant_bytes;     /* size of the constants, kept from run to run */
  int64_t bound_bytes;        /* its lower bound: the most bytes that are live at one step */
  int64_t slot_bytes;         /* size of an input slot */
  int64_t output_bytes;       /* size of the output buffer */
  int64_t prepared_bytes;     /* memory of the prepared kernels */
  int64_t folded_bytes;       /* memory for folded constants, kept from run to run */
  int64_t host_bytes;         /* host memory of the steps on the fallback */
  int64_t offload_bytes;      /* host memory of offloaded values */
  const char *const *regions; /* names of the state map's regions, for the text form */
  uint64_t hash;              /* of graph, kernels, variants and locations */
} tn_program;

struct tn_slot_layout;

/* Plans the memory of a cover (memory/memory_plan.h) and makes a program of it, which owns the cover on
 * success. `slot`: as in tn_plan. */
tn_status tn_program_create(tn_env *env, const char *name, const tn_target *target, tn_cover *take_cover,
                            const tn_state_map *map, const struct tn_slot_layout *slot, tn_program **program);
/* The steps of a run and those of constants. */
static inline int32_t tn_program_all_steps(const tn_program *program) {
  return program->n_steps + program->n_constants;
}

/* Accepts NULL. */
void tn_program_destroy(tn_program *program);
