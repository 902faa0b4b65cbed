/* core/step/programs/mapped_states.h: parameters whose memory is a mapped file. */
#pragma once

#include "core/compile/state_map.h"

/* The region of the parameters that are used where the file has them. */
#define TN_MAPPED_REGION "mapped.f32"

typedef struct tn_mapped_tensor {
  const char *path; /* of the parameter */
  tn_type type;     /* f32, row-major */
  int64_t offset;   /* in elements, from `memory` on */
} tn_mapped_tensor;

typedef struct tn_mapped_states { /* of tn_program_request */
  const char *file;
  void *memory; /* in memory of the host; writes are private to the process */
  const tn_mapped_tensor *v;
  int32_t n; /* sorted by path */
} tn_mapped_states;

/* Places the parameters of a graph that the file has in their type, unless it reads low-precision copies of
 * parameters. `mapped` may be NULL. */
tn_status tn_mapped_states_place(const tn_mapped_states *mapped, tn_state_map *map, const tn_graph *graph);
