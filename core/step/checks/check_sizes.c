/* core/step/checks/check_sizes.c: parameters whose type depends on [model] sizes or lengths. */
#include "core/step/checks/check_sizes.h"

static tn_status sizes_refuse_state(tn_run *run, const tn_placement *known, const tn_gstate *state,
                                    int64_t size) {
  char here[TN_TYPE_TEXT], there[TN_TYPE_TEXT];
  const char *key = tn_settings_lengths_key(&run->settings);
  const char *where = state->where != NULL && *state->where != '\0'
                          ? state->where
                          : tn_settings_where(&run->ini, "model", key);
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: %s is %s at %lld of [model] %s, and %s at %lld: its layer takes one size alone; expected "
      "layers that take any, as a linear layer behind global_avg_pool does",
      where, state->path, tn_type_format(&state->type, here), (long long)size, key,
      tn_type_format(&known->type, there), (long long)tn_settings_longest(&run->settings));
}

tn_status tn_sizes_name_failure(tn_run *run, int64_t size) {
  const char *more = tn_arena_printf(&run->ini.arena, " (at %lld of [model] %s, not at %lld)",
                                     (long long)size, tn_settings_lengths_key(&run->settings),
                                     (long long)tn_settings_longest(&run->settings));
  return more != NULL ? tn_mistakes_add(&run->ini.arena, &run->ini.mistakes, more) : TN_ENOMEM;
}

tn_status tn_sizes_check_states(tn_run *run, const tn_state_map *map, const tn_graph *graph, int64_t size) {
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    const tn_placement *known = tn_state_map_find(map, state->path);
    if (known == NULL || tn_type_equal(&known->type, &state->type)) continue;
    return tn_ini_note(&run->env, &run->ini, sizes_refuse_state(run, known, state, size));
  }
  return TN_OK;
}
