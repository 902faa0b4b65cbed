/* core/step/programs/memory_states.c: the states of a run by their use. A state's bytes are those up to the
 * next state of its region, so that the alignment of a region belongs to its states and the rows sum to the
 * region. */
#include "core/step/programs/memory_states.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text/text.h"

/* The end of the names of averages (core/step/update/averages.c), and of the states that accumulate gradients
 * (core/step/update/reduce_gradients.c). */
static const char memory_average[] = ".average", memory_gradient[] = "run.gradient";

static bool memory_state_ends(const char *path, const char *end) {
  size_t n = strlen(path), m = strlen(end);
  return n > m && strcmp(path + n - m, end) == 0;
}

int32_t tn_memory_state_row(const tn_placement *state) {
  switch (state->what) {
  case TN_STATE_PARAM: return TN_USE_PARAMETERS;
  case TN_STATE_DERIVED: return TN_USE_COPIES;
  case TN_STATE_OPTIMIZER:
    return memory_state_ends(state->path, memory_average) ? TN_USE_AVERAGES : TN_USE_OPTIMIZER;
  case TN_STATE_SCRATCH:
    return tn_text_starts(state->path, memory_gradient) ? TN_USE_GRADIENTS : TN_USE_BUFFERS;
  default: return TN_USE_BUFFERS;
  }
}

static int memory_compare_offsets(const void *a, const void *b) {
  const tn_placement *x = *(const tn_placement *const *)a, *y = *(const tn_placement *const *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The states of a region in the order of their offsets; returns their number. */
static size_t memory_states_of(const tn_state_map *map, int32_t region, const tn_placement **list) {
  size_t n = 0;
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    if (state->region == region && state->path[0] != '@') list[n++] = state;
  }
  qsort(list, n, sizeof *list, memory_compare_offsets);
  return n;
}

/* A region that is divided among ranks holds a part of its states: they have one use. */
static void memory_add_region(const tn_region *region, const tn_placement **states, size_t n,
                              int64_t rows[TN_USES]) {
  int64_t left = (int64_t)tn_region_own_bytes(region), size = (int64_t)tn_dtype_size(region->dtype);
  for (size_t i = 0; i + 1 < n && region->shards == 1 && left > 0; i++) {
    int64_t bytes = (states[i + 1]->offset - (i > 0 ? states[i]->offset : 0)) * size;
    rows[tn_memory_state_row(states[i])] += bytes;
    left -= bytes;
  }
  const tn_placement *last = n == 0 ? &region->whole : states[region->shards == 1 ? n - 1 : 0];
  rows[tn_memory_state_row(last)] += left;
}

tn_status tn_memory_add_states(const tn_state_map *map, int64_t rows[TN_USES]) {
  const tn_placement **states = tn_alloc(map->env, tn_size_mul(map->states.n + 1, sizeof *states));
  if (states == NULL) return TN_ENOMEM;
  for (size_t r = 0; r < map->regions.n; r++) {
    size_t n = memory_states_of(map, (int32_t)r, states);
    memory_add_region(&map->regions.v[r], states, n, rows);
  }
  tn_release(map->env, states);
  return TN_OK;
}
