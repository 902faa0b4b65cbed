/* core/compile/state_map.c: regions, and the states in them. */
#include "core/compile/state_map.h"

tn_status tn_state_map_create(tn_env *env, tn_state_map **map) {
  tn_state_map *made = tn_alloc(env, sizeof *made);
  *map = made;
  if (made == NULL) return TN_ENOMEM;
  made->env = env;
  made->arena = tn_arena_new(env);
  made->paths = tn_name_index_new(env);
  made->by_location = tn_hash_index_new(env);
  return TN_OK;
}

void tn_state_map_destroy(tn_state_map *map) {
  if (map == NULL) return;
  tn_vec_free(map->env, &map->states);
  tn_vec_free(map->env, &map->regions);
  tn_name_index_free(&map->paths);
  tn_hash_index_free(&map->by_location);
  tn_arena_free(&map->arena);
  tn_release(map->env, map);
}

/* ---- regions ---- */

static int32_t find_map_region(const tn_state_map *map, const char *name) {
  for (size_t i = 0; i < map->regions.n; i++)
    if (tn_text_equal(map->regions.v[i].name, name)) return (int32_t)i;
  return -1;
}

tn_status tn_state_map_region(tn_state_map *map, const char *name, int32_t dtype, int32_t *region) {
  *region = find_map_region(map, name);
  if (*region >= 0) {
    int32_t known = map->regions.v[*region].dtype;
    if (known == dtype) return TN_OK;
    return tn_failf(map->env, TN_EINVAL, "region %s holds %s, not %s", name, tn_dtype_name(known),
                    tn_dtype_name(dtype));
  }
  tn_region made = {.name = tn_arena_strdup(&map->arena, name),
                    .dtype = dtype,
                    .align = TN_REGION_ALIGN_ELEMENTS,
                    .shards = 1,
                    .like = -1,
                    .inside = -1};
  made.whole = (tn_placement){.path = tn_arena_printf(&map->arena, "@%s", name),
                              .type = {dtype, 1, {0}},
                              .what = TN_STATE_OPTIMIZER,
                              .init = "zeros",
                              .where = "",
                              .region = (int32_t)map->regions.n};
  if (made.name == NULL || made.whole.path == NULL) return TN_ENOMEM;
  *region = (int32_t)map->regions.n;
  return tn_vec_push(map->env, &map->regions, made);
}

/* `count` is a multiple of the region's alignment. */
static void set_region_count(tn_region *region, int64_t count) {
  int64_t step = (int64_t)region->align * region->shards;
  if (region->shards > 1 && count <= INT64_MAX - step) count = (count + step - 1) / step * step;
  region->count = count;
  region->whole.type.dims[0] = count / region->shards;
}

void tn_state_map_align(tn_state_map *map, int32_t region, int32_t elements) {
  map->regions.v[region].align = elements;
}

void tn_state_map_divide(tn_state_map *map, int32_t region, int32_t ranks) {
  map->regions.v[region].shards = ranks;
  set_region_count(&map->regions.v[region], map->regions.v[region].count);
}

void tn_state_map_put_inside(tn_state_map *map, int32_t region, int32_t whole) {
  map->regions.v[region].inside = whole;
}

int32_t tn_state_map_shards(const tn_state_map *map, const tn_placement *state) {
  return map->regions.v[state->region].shards;
}

bool tn_state_map_on_host(const tn_state_map *map, const tn_placement *state) {
  return map->regions.v[state->region].host;
}

bool tn_state_map_is_far(const tn_state_map *map, const tn_placement *state) {
  return tn_region_is_far(&map->regions.v[state->region]);
}

bool tn_state_map_is_streamed(const tn_state_map *map, const char *path) {
  const tn_placement *state = map != NULL ? tn_state_map_find(map, path) : NULL;
  return state != NULL && map->regions.v[state->region].streamed;
}

bool tn_state_map_is_copied(const tn_state_map *map, const tn_placement *state) {
  return tn_state_map_shards(map, state) > 1 || tn_state_map_on_host(map, state);
}

size_t tn_region_bytes(const tn_region *region) {
  return tn_size_mul((size_t)(region->count / region->shards), tn_dtype_size(region->dtype));
}

void tn_state_map_extend(tn_state_map *map, int32_t region, int64_t count) {
  if (map->regions.v[region].count < count) set_region_count(&map->regions.v[region], count);
}

void tn_state_map_follow(tn_state_map *map, int32_t region, int32_t like) {
  if (region != like) map->regions.v[region].like = like;
}

static int32_t root_region(const tn_state_map *map, int32_t region) {
  while (map->regions.v[region].like >= 0) region = map->regions.v[region].like;
  return region;
}

size_t tn_region_own_bytes(const tn_region *region) {
  bool other = region->inside >= 0 || region->mapped != NULL || tn_region_is_far(region);
  return other ? 0 : tn_region_bytes(region);
}

/* ---- states ---- */

const tn_placement *tn_state_map_find(const tn_state_map *map, const char *path) {
  if (path[0] == '@') {
    int32_t region = find_map_region(map, path + 1);
    return region < 0 ? NULL : &map->regions.v[region].whole;
  }
  int64_t i = tn_name_index_find(&map->paths, path);
  return i != TN_NAME_INDEX_NONE ? &map->states.v[i] : NULL;
}

static uint64_t hash_state_location(int32_t region, int64_t offset) {
  return tn_hash_bytes(tn_hash_bytes(TN_HASH_START, &region, sizeof region), &offset, sizeof offset);
}

const tn_placement *tn_state_map_at(const tn_state_map *map, const char *region, int64_t offset) {
  int32_t index = find_map_region(map, region);
  size_t probe = 0;
  uint64_t hash = hash_state_location(index, offset);
  for (int64_t i; (i = tn_hash_index_next(&map->by_location, hash, &probe)) != TN_HASH_INDEX_NONE;)
    if (map->states.v[i].region == index && map->states.v[i].offset == offset) return &map->states.v[i];
  return NULL;
}

bool tn_state_map_are_parallel(const tn_state_map *map, const tn_placement *a, const tn_placement *b) {
  return a->offset == b->offset && tn_type_same_dims(&a->type, &b->type) &&
         root_region(map, a->region) == root_region(map, b->region);
}

void tn_state_map_set_layout(tn_state_map *map, const tn_placement *state, const tn_layout *layout) {
  const tn_placement first = *state;
  for (size_t region = 0; region < map->regions.n; region++) {
    size_t probe = 0;
    uint64_t hash = hash_state_location((int32_t)region, first.offset);
    for (int64_t i; (i = tn_hash_index_next(&map->by_location, hash, &probe)) != TN_HASH_INDEX_NONE;)
      if (tn_state_map_are_parallel(map, &first, &map->states.v[i])) map->states.v[i].layout = *layout;
  }
}

static tn_status check_known_type(const tn_state_map *map, const tn_placement *known,
                                  const tn_gstate *state) {
  char one[TN_TYPE_TEXT], other[TN_TYPE_TEXT];
  if (tn_type_equal(&known->type, &state->type)) return TN_OK;
  return tn_failf(map->env, TN_EINVAL, "state %s is %s here and %s elsewhere; all programs of a run share it",
                  state->path, tn_type_format(&state->type, one), tn_type_format(&known->type, other));
}

/* Rounds up; INT64_MAX where that would overflow. */
static int64_t align_region_elements(const tn_region *region, int64_t n) {
  if (n > INT64_MAX - region->align) return INT64_MAX;
  return (n + region->align - 1) / region->align * region->align;
}

static tn_status check_free_elements(const tn_state_map *map, const tn_placement *p, int64_t end) {
  const tn_region *region = &map->regions.v[p->region];
  if (p->offset % region->align != 0 && region->mapped == NULL)
    return tn_failf(map->env, TN_EINVAL, "state %s: offset %lld is not a multiple of %d elements", p->path,
                    (long long)p->offset, region->align);
  if (p->offset >= region->end) return TN_OK; /* states mostly come in order */
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *other = &map->states.v[i];
    int64_t other_end = other->offset + tn_type_count(&other->type);
    if (other->region == p->region && other->offset < end && p->offset < other_end)
      return tn_failf(map->env, TN_EINVAL, "states %s and %s lie in the same memory of region %s",
                      other->path, p->path, map->regions.v[p->region].name);
  }
  return TN_OK;
}

static tn_status make_placement(tn_state_map *map, const tn_gstate *state, int32_t region, int64_t offset,
                                tn_placement *p) {
  *p = (tn_placement){.path = tn_arena_strdup(&map->arena, state->path),
                      .type = state->type,
                      .what = state->what,
                      .init = tn_arena_strdup(&map->arena, state->init != NULL ? state->init : ""),
                      .where = tn_arena_strdup(&map->arena, state->where != NULL ? state->where : ""),
                      .region = region,
                      .offset = offset};
  return p->path == NULL || p->init == NULL || p->where == NULL ? TN_ENOMEM : TN_OK;
}

static tn_status append_placement(tn_state_map *map, const tn_placement *p) {
  uint64_t hash = hash_state_location(p->region, p->offset);
  TN_TRY(tn_vec_reserve(map->env, &map->states, map->states.n + 1));
  TN_TRY(tn_hash_index_add(&map->by_location, hash, (uint32_t)map->states.n));
  TN_TRY(tn_name_index_add(&map->paths, p->path));
  map->states.v[map->states.n++] = *p;
  return TN_OK;
}

tn_status tn_state_map_add(tn_state_map *map, const tn_gstate *state, int32_t region, int64_t offset) {
  const tn_placement *known = tn_state_map_find(map, state->path);
  tn_placement p;
  int64_t end = 0;
  if (known != NULL) return check_known_type(map, known, state);
  if (state->path[0] == '@')
    return tn_failf(map->env, TN_EINVAL, "state %s: there is no region of that name", state->path);
  tn_region *r = &map->regions.v[region];
  if (r->dtype != state->type.dtype)
    return tn_failf(map->env, TN_EINVAL, "state %s is %s and cannot lie in region %s of %s", state->path,
                    tn_dtype_name(state->type.dtype), r->name, tn_dtype_name(r->dtype));
  bool at_end = offset < 0;
  int64_t next =
      r->shards > 1 ? align_region_elements(r, r->end) : r->count; /* not behind the gap at the end */
  TN_TRY(make_placement(map, state, region, at_end ? next : offset, &p));
  if (__builtin_add_overflow(p.offset, tn_type_count(&state->type), &end) ||
      align_region_elements(r, end) == INT64_MAX)
    return tn_failf(map->env, TN_EINVAL, "state %s does not fit into region %s: too many elements",
                    state->path, r->name);
  if (!at_end) TN_TRY(check_free_elements(map, &p, end));
  TN_TRY(append_placement(map, &p));
  if (end > r->end) r->end = end;
  if (align_region_elements(r, end) > r->count) set_region_count(r, align_region_elements(r, end));
  return TN_OK;
}

static tn_status add_remaining_state(tn_state_map *map, const tn_gstate *state) {
  char name[32] = "state.";
  int32_t region = -1;
  size_t at = 6;
  if (state->path[0] != '@' && tn_state_map_find(map, state->path) == NULL) {
    for (const char *c = tn_dtype_name(state->type.dtype); *c != '\0'; c++) name[at++] = *c;
    TN_TRY(tn_state_map_region(map, name, state->type.dtype, &region));
  }
  return tn_state_map_add(map, state, region, -1);
}

tn_status tn_state_map_add_rest(tn_state_map *map, const tn_graph *graph) {
  for (size_t i = 0; i < graph->states.n; i++)
    if (graph->states.v[i].what != TN_STATE_DERIVED) TN_TRY(add_remaining_state(map, &graph->states.v[i]));
  return TN_OK;
}

int64_t tn_state_map_bytes(const tn_state_map *map) {
  int64_t bytes = 0;
  for (size_t i = 0; i < map->regions.n; i++) bytes += (int64_t)tn_region_own_bytes(&map->regions.v[i]);
  return bytes;
}

int64_t tn_state_map_host_bytes(const tn_state_map *map) {
  int64_t bytes = 0;
  for (size_t i = 0; i < map->regions.n; i++)
    if (tn_region_is_far(&map->regions.v[i])) bytes += (int64_t)tn_region_bytes(&map->regions.v[i]);
  return bytes;
}

int64_t tn_state_map_streamed_bytes(const tn_state_map *map) {
  int64_t bytes = 0;
  for (size_t i = 0; i < map->regions.n; i++)
    if (map->regions.v[i].streamed || map->regions.v[i].source)
      bytes += (int64_t)tn_region_bytes(&map->regions.v[i]);
  return bytes;
}
