#include "core/records/checkpoints/stored_states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/step/update/averages.h"

/* The name and the kind that a state has in a checkpoint. */
static tn_status stored_states_rename(tn_arena *arena, const tn_state_map *map, const tn_placement *state,
                                      const char **name, int32_t *what) {
  const tn_placement *average, *averaged;
  TN_TRY(tn_average_of(map, state, &average));
  TN_TRY(tn_averaged_state(map, state, &averaged));
  if (average != NULL) {
    *name = tn_arena_printf(arena, "%s.trained", state->path);
    *what = TN_STATE_OPTIMIZER;
  }
  if (averaged != NULL) {
    *name = averaged->path;
    *what = averaged->what;
  }
  return *name != NULL ? TN_OK : TN_ENOMEM;
}

static int stored_states_compare(const void *x, const void *y) {
  const tn_stored_state *a = x, *b = y;
  return strcmp(a->name, b->name);
}

tn_status tn_stored_states_list(tn_arena *arena, const tn_state_map *map, uint32_t kinds, bool averages,
                                tn_stored_states *list) {
  size_t bytes = tn_size_mul(map->states.n + 1, sizeof *list->v);
  *list = (tn_stored_states){tn_arena_alloc(arena, bytes), tn_arena_alloc(arena, bytes), 0};
  if (list->v == NULL || list->by_name == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    const char *name = state->path;
    int32_t what = state->what;
    if (state->path[0] == '@') continue;
    if (averages) TN_TRY(stored_states_rename(arena, map, state, &name, &what));
    if (kinds & (1u << what)) list->v[list->n++] = (tn_stored_state){name, state};
  }
  memcpy(list->by_name, list->v, (size_t)list->n * sizeof *list->v);
  qsort(list->by_name, (size_t)list->n, sizeof *list->by_name, stored_states_compare);
  return TN_OK;
}

bool tn_stored_states_have(const tn_stored_states *list, const char *name) {
  const tn_stored_state wanted = {name, NULL};
  return bsearch(&wanted, list->by_name, (size_t)list->n, sizeof *list->by_name, stored_states_compare) !=
         NULL;
}

tn_status tn_stored_state_check_finite(const void *handle, const tn_stored_state *stored, const void *data) {
  const tn_placement *state = stored->state;
  bool matters = state->what != TN_STATE_HOST && state->type.dtype == TN_F32;
  int64_t n = matters ? tn_type_count(&state->type) : 0;
  for (int64_t i = 0; i < n; i++) {
    float value = ((const float *)data)[i];
    if (!isfinite(value))
      return tn_failf(handle, TN_ENONFINITE, "element %lld of '%s' is %g", (long long)i, stored->name,
                      (double)value);
  }
  return TN_OK;
}
