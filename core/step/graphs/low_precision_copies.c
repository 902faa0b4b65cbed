#include "core/step/graphs/low_precision_copies.h"

#include <string.h>

#include "core/graph/input_state.h"
#include "tenon/ops.h"

enum { MARK = ':' }; /* separates a parameter's path from the dtype of the copy */

static const int32_t low_types[] = {TN_F16, TN_BF16, TN_F32}; /* f32: of divided regions and of the host's */
enum { LOW_TYPES = sizeof low_types / sizeof *low_types };

const char *tn_low_precision_path(tn_arena *arena, const char *path, int32_t dtype) {
  return tn_arena_printf(arena, "%s%c%s", path, MARK, tn_dtype_name(dtype));
}

const char *tn_low_precision_source(tn_arena *arena, const char *path) {
  const char *mark = strrchr(path, MARK);
  return tn_arena_printf(arena, "%.*s", (int)(mark - path), path);
}

tn_val tn_low_precision_read(tn_graph *to, const tn_graph *from, tn_val param, int32_t dtype) {
  const tn_state_attributes *source = tn_graph_maker(from, param)->attributes;
  const char *path = tn_low_precision_path(&to->arena, source->path, dtype);
  tn_type type = source->type;
  type.dtype = dtype;
  return path == NULL ? 0 : tn_graph_state(to, path, &type, TN_STATE_DERIVED, "", "");
}

/* ---- reading divided regions, and those of the host ---- */

static tn_status gathered_rewrite_node(tn_rewrite *r, const tn_gnode *node, void *context) {
  const tn_state_map *map = context;
  const tn_state_attributes *a = node->attributes;
  const tn_placement *state =
      node->op == &tn_op_state && a->path[0] != '@' ? tn_state_map_find(map, a->path) : NULL;
  if (state == NULL || !tn_state_map_is_copied(map, state)) return tn_rewrite_copy(r, node);
  tn_val copy = tn_low_precision_read(tn_builder_graph(r->b), r->from, node->first_out, a->type.dtype);
  r->map[node->first_out] = copy;
  return copy != 0 ? TN_OK : r->from->env->record->code;
}

tn_status tn_read_gathered(const tn_state_map *map, tn_graph **graph) {
  tn_graph *to = NULL;
  bool copied = false;
  for (size_t i = 0; i < map->regions.n; i++)
    copied = copied || tn_state_map_is_copied(map, &map->regions.v[i].whole);
  if (!copied) return TN_OK;
  TN_TRY(tn_graph_rewrite(*graph, gathered_rewrite_node, (void *)(uintptr_t)map, &to));
  tn_graph_destroy(*graph);
  *graph = to;
  return TN_OK;
}

/* The cast of a rank's part, gathered from all ranks: the op of a layer "bucket 2", as that which sums the
 * gradients of the region. */
static tn_val low_precision_gather(tn_build *b, const tn_region *region, tn_val part, int32_t dtype) {
  const char *bucket = strrchr(region->name, 'b');
  const char *name = tn_arena_printf(&tn_builder_graph(b)->arena, "bucket %s", bucket + 1);
  if (name == NULL) {
    tn_builder_fail(b, TN_ENOMEM);
    return 0;
  }
  tn_build_frame frame = {.prefix = name, .where = ""};
  tn_builder_push(b, &frame);
  tn_val whole = tn_all_gather(b, tn_to_dtype(b, part, dtype), region->shards);
  tn_builder_pop(b);
  return whole;
}

/* ---- places ---- */

/* The region of the copies of `source`, with the same offsets. */
static tn_status low_precision_region(tn_state_map *map, int32_t source, int32_t dtype, int32_t *region) {
  const char *name = tn_low_precision_path(&map->arena, map->regions.v[source].name, dtype);
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(tn_state_map_region(map, name, dtype, region));
  tn_state_map_follow(map, *region, source);
  tn_state_map_extend(map, *region, map->regions.v[source].count);
  map->regions.v[*region].streamed = map->regions.v[source].copies_streamed;
  if (dtype == map->regions.v[source].dtype && map->regions.v[source].shards > 1)
    tn_state_map_put_inside(map, source, *region);
  return TN_OK;
}

static tn_status low_precision_allocate_copy(tn_state_map *map, const tn_gstate *state) {
  const char *source = tn_low_precision_source(&map->arena, state->path);
  const tn_placement *param = source != NULL ? tn_state_map_find(map, source) : NULL;
  int32_t region;
  if (param == NULL)
    return source == NULL
               ? TN_ENOMEM
               : tn_failf(map->env, TN_EINTERNAL, "%s: its parameter has no location", state->path);
  int64_t offset = param->offset;
  TN_TRY(low_precision_region(map, param->region, state->type.dtype, &region));
  return tn_state_map_add(map, state, region, offset);
}

tn_status tn_low_precision_allocate(tn_state_map *map, const tn_graph *graph) {
  for (size_t i = 0; i < graph->states.n; i++)
    if (graph->states.v[i].what == TN_STATE_DERIVED)
      TN_TRY(low_precision_allocate_copy(map, &graph->states.v[i]));
  return TN_OK;
}

/* ---- commits ---- */

/* The value that a state has after a commit. */
static tn_status low_precision_decided(tn_build *b, const tn_gcommit *commit, tn_val *value) {
  tn_graph *graph = tn_builder_graph(b);
  const tn_gstate s = *tn_graph_find_state(graph, commit->path); /* the call below may move the table */
  *value = commit->value;
  if (commit->predicate == 0) return TN_OK;
  tn_val old = tn_graph_state(graph, s.path, &s.type, s.what, s.init, s.where);
  if (old == 0) return graph->env->record->code;
  *value = tn_where(b, commit->predicate, commit->value, old);
  return tn_build_status(b);
}

/* The copy of a rank's part in dtype `dtype`, of all ranks, as the commit of the copy at `path`. Whether an
 * update is applied decides the part, so that no copy of all elements is chosen from. */
static tn_status low_precision_commit_gathered(const tn_state_map *map, tn_build *b, const tn_gcommit *commit,
                                               const char *path, int32_t dtype) {
  const tn_region *region = &map->regions.v[tn_state_map_find(map, commit->path)->region];
  tn_val value;
  TN_TRY(low_precision_decided(b, commit, &value));
  value = low_precision_gather(b, region, value, dtype);
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(tn_builder_graph(b), path, value, 0);
}

/* Of a region of the host: the commits of the region and of its copies are of one value, which the host
 * makes. */
static tn_status low_precision_commit_from_host(tn_build *b, size_t commit, const char *path, int32_t dtype) {
  tn_graph *graph = tn_builder_graph(b);
  tn_val value;
  TN_TRY(low_precision_decided(b, &graph->commits.v[commit], &value));
  graph->commits.v[commit].value = value;
  graph->commits.v[commit].predicate = 0;
  value = tn_to_dtype(b, value, dtype);
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(graph, path, value, 0);
}

/* Averages are gathered, or copied from the host, when they are read: by the refresh program. */
static bool low_precision_is_made_later(const tn_graph *graph, const tn_gcommit *commit) {
  return tn_graph_find_state(graph, commit->path)->what != TN_STATE_PARAM;
}

/* commit PATH:dtype = cast(value), if the copy exists. */
static tn_status low_precision_commit_copy(const tn_state_map *map, tn_build *b, size_t index,
                                           int32_t dtype) {
  tn_graph *graph = tn_builder_graph(b);
  const tn_gcommit one = graph->commits.v[index], *commit = &one; /* a commit may grow the table */
  const char *path = tn_low_precision_path(&graph->arena, commit->path, dtype);
  const tn_placement *copy = path != NULL ? tn_state_map_find(map, path) : NULL;
  if (copy == NULL) return path != NULL ? TN_OK : TN_ENOMEM;
  const tn_placement *source = tn_state_map_find(map, commit->path);
  if (tn_state_map_is_copied(map, source) && low_precision_is_made_later(graph, commit)) return TN_OK;
  const tn_gstate state = {
      .path = path, .type = copy->type, .what = TN_STATE_DERIVED, .init = "", .where = ""};
  if (tn_graph_find_state(graph, path) == NULL) TN_TRY(tn_graph_register_state(graph, &state));
  if (tn_state_map_on_host(map, source)) return low_precision_commit_from_host(b, index, path, dtype);
  if (tn_state_map_shards(map, source) > 1) return low_precision_commit_gathered(map, b, commit, path, dtype);
  tn_val value = tn_to_dtype(b, commit->value, dtype);
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(graph, path, value, commit->predicate);
}

static tn_status low_precision_commit_copies(const tn_state_map *map, tn_build *b) {
  const tn_graph *graph = tn_builder_graph(b);
  size_t n = graph->commits.n;
  for (size_t i = 0; i < n; i++)
    for (int32_t k = 0; k < LOW_TYPES; k++) TN_TRY(low_precision_commit_copy(map, b, i, low_types[k]));
  return TN_OK;
}

tn_status tn_low_precision_commit(const tn_state_map *map, tn_graph *graph) {
  tn_builder *builder = NULL;
  TN_TRY(tn_builder_create(graph, &builder));
  tn_status status = low_precision_commit_copies(map, tn_builder_handle(builder));
  tn_builder_destroy(builder);
  return status;
}

/* ---- refresh ---- */

static tn_status low_precision_refresh_region(tn_build *b, const tn_region *source, const tn_region *copy) {
  tn_graph *graph = tn_builder_graph(b);
  const tn_gstate state = {
      .path = copy->whole.path, .type = copy->whole.type, .what = TN_STATE_DERIVED, .init = "", .where = ""};
  tn_val whole = tn_graph_state(graph, source->whole.path, &source->whole.type, source->whole.what, "", "");
  if (whole == 0) return TN_ENOMEM;
  TN_TRY(tn_graph_register_state(graph, &state));
  if (source->shards > 1) graph->ranks = source->shards;
  tn_val value = source->shards > 1 ? low_precision_gather(b, source, whole, copy->dtype)
                                    : tn_to_dtype(b, whole, copy->dtype);
  TN_TRY(tn_build_status(b));
  return tn_graph_commit(graph, copy->whole.path, value, 0);
}

/* Casts a region into the region of its copies, if it has copies. By now the regions have their final sizes.
 */
static tn_status low_precision_refresh_copy(tn_state_map *map, tn_build *b, size_t source, int32_t dtype,
                                            bool *any) {
  const char *name = tn_low_precision_path(&map->arena, map->regions.v[source].whole.path, dtype);
  const tn_placement *copy = name != NULL ? tn_state_map_find(map, name) : NULL;
  if (copy == NULL) return name != NULL ? TN_OK : TN_ENOMEM;
  int32_t region = copy->region;
  *any = true;
  tn_state_map_extend(map, region, map->regions.v[source].count);
  return low_precision_refresh_region(b, &map->regions.v[source], &map->regions.v[region]);
}

tn_status tn_refresh_graph(tn_env *env, struct tn_op_table *ops, tn_state_map *map, tn_graph **out) {
  tn_graph *graph = NULL;
  tn_builder *builder = NULL;
  bool any = false;
  *out = NULL;
  TN_TRY(tn_graph_create(env, ops, &graph));
  tn_status status = tn_builder_create(graph, &builder);
  for (size_t i = 0; status == TN_OK && i < map->regions.n; i++)
    for (int32_t k = 0; status == TN_OK && k < LOW_TYPES; k++)
      status = low_precision_refresh_copy(map, tn_builder_handle(builder), i, low_types[k], &any);
  tn_builder_destroy(builder);
  if (status == TN_OK && any)
    *out = graph;
  else
    tn_graph_destroy(graph);
  return status;
}
