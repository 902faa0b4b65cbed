/* core/records/checkpoints/adapter_begin.c: see adapter_begin.h. */
#include "core/records/checkpoints/adapter_begin.h"

#include "core/base/adapters.h"

/* The norms of LAYER.weight, as the values of the parameter `magnitude`. */
static tn_status adapter_begin_norms(tn_run *run, tn_executor *executor, const tn_placement *magnitude,
                                     const tn_placement *weight, bool embedding) {
  tn_env *env = &run->env;
  int64_t rows = weight->type.dims[0], columns = rows > 0 ? tn_type_count(&weight->type) / rows : 0;
  size_t bytes = tn_type_bytes(&weight->type), norm_bytes = tn_type_bytes(&magnitude->type);
  float *elements = tn_alloc(env, bytes + 1), *norms = tn_alloc(env, norm_bytes + 1);
  tn_status status = elements != NULL && norms != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = tn_executor_read(executor, weight->path, elements, bytes);
  if (status == TN_OK) {
    tn_adapter_norms(elements, rows, columns, embedding, norms);
    status = tn_executor_write(executor, magnitude->path, norms, norm_bytes);
  }
  tn_release(env, elements);
  tn_release(env, norms);
  return status;
}

static const tn_placement *adapter_begin_find(tn_run *run, const tn_state_map *map, const char *layer,
                                              size_t n, const char *part) {
  const char *path = tn_arena_printf(&run->arena, "%.*s.%s", (int)n, layer, part);
  return path != NULL ? tn_state_map_find(map, path) : NULL;
}

tn_status tn_adapters_begin(tn_run *run, tn_executor *executor, const tn_state_map *map) {
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    size_t n = state->what == TN_STATE_PARAM ? tn_adapter_magnitude_layer(state->path) : 0;
    if (n == 0) continue;
    const tn_placement *weight = adapter_begin_find(run, map, state->path, n, "weight");
    if (weight == NULL) return TN_ENOMEM; /* the layer of an adapter has one */
    bool embedding = adapter_begin_find(run, map, state->path, n, TN_ADAPTER_EMBEDDING_DOWN) != NULL;
    TN_TRY(adapter_begin_norms(run, executor, state, weight, embedding));
  }
  return TN_OK;
}
