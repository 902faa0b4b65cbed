/* core/step/programs/mapped_states.c: see mapped_states.h. The region begins at the first mapped tensor of
 * the file, and the offsets of its states are those of the file, so that programs need to know nothing of it.
 */
#include "core/step/programs/mapped_states.h"

#include <stdlib.h>
#include <string.h>

static int mapped_compare(const void *path, const void *tensor) {
  return strcmp(path, ((const tn_mapped_tensor *)tensor)->path);
}

static tn_status mapped_place_one(const tn_mapped_states *mapped, tn_state_map *map, const tn_gstate *state,
                                  int64_t offset) {
  int32_t region;
  TN_TRY(tn_state_map_region(map, TN_MAPPED_REGION, TN_F32, &region));
  map->regions.v[region].mapped = mapped->memory;
  map->regions.v[region].file = mapped->file;
  return tn_state_map_add(map, state, region, offset);
}

/* Kernels of a graph with low-precision copies read those. */
static bool mapped_has_copies(const tn_graph *graph) {
  for (size_t i = 0; i < graph->states.n; i++)
    if (graph->states.v[i].what == TN_STATE_DERIVED) return true;
  return false;
}

tn_status tn_mapped_states_place(const tn_mapped_states *mapped, tn_state_map *map, const tn_graph *graph) {
  if (mapped == NULL || mapped_has_copies(graph)) return TN_OK;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    if (state->what != TN_STATE_PARAM || state->path[0] == '@') continue;
    const tn_mapped_tensor *found =
        bsearch(state->path, mapped->v, (size_t)mapped->n, sizeof *mapped->v, mapped_compare);
    if (found != NULL && tn_type_equal(&found->type, &state->type))
      TN_TRY(mapped_place_one(mapped, map, state, found->offset));
  }
  return TN_OK;
}
