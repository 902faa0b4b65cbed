/* Walks through memory: the order in which a region's elements lie, how operands go along it, and the
 * segments into which that cuts it (pointwise.h). */
#include <string.h>

#include "backends/onednn/own/pointwise.h"

bool tn_tile_broadcasts(const tn_type *type, const tn_type *space) {
  int32_t lead = space->rank - type->rank;
  if (lead < 0) return false;
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i] != 1 && type->dims[i] != space->dims[lead + i]) return false;
  return true;
}

/* ---- spaces ---- */

static void count_positions(tn_tile_space *s) {
  s->count = 1;
  for (int32_t i = 0; i < s->n_axes; i++) s->count *= s->axis[i].extent;
  s->segment = s->count;
  s->first = 0;
}

static bool is_plain(const tn_layout *layout, int32_t rank) {
  for (int32_t i = 0; i < rank && layout->set; i++)
    if (layout->order[i] != i) return false;
  return true;
}

bool tn_tile_space_of(const tn_type *type, const tn_layout *layout, tn_tile_space *s) {
  bool blocked = layout != NULL && layout->set && layout->n_blocks > 0;
  int64_t size = blocked ? layout->block[0].size : 1;
  *s = (tn_tile_space){.type = *type, .n_axes = type->rank};
  if (layout != NULL && !is_plain(layout, type->rank)) return false;
  for (int32_t i = 0; i < type->rank; i++) s->axis[i] = (tn_tile_axis){i, type->dims[i], 1};
  if (blocked) {
    if (layout->n_blocks > 1 || layout->block[0].dim != 1 || type->rank < 2) return false;
    if ((size != 8 && size != 16) || type->dims[1] % size != 0) return false;
    s->axis[1] = (tn_tile_axis){1, type->dims[1] / size, size};
    s->axis[s->n_axes++] = (tn_tile_axis){1, size, 1};
  }
  count_positions(s);
  return true;
}

tn_tile_space tn_tile_space_flat(const tn_type *type, int64_t count) {
  tn_tile_space s = {.type = *type, .n_axes = 1, .axis = {{0, count, 1}}};
  count_positions(&s);
  return s;
}

/* ---- strides ---- */

void tn_tile_steps(const tn_type *type, int64_t *steps) {
  int64_t step = 1;
  memset(steps, 0, TN_MAX_RANK * sizeof *steps);
  for (int32_t i = type->rank - 1; i >= 0; i--) {
    steps[i] = step;
    step *= type->dims[i];
  }
}

static int64_t stride_of(const tn_tile_space *s, const tn_type *type, const int64_t *steps, int32_t axis) {
  const tn_tile_axis *a = &s->axis[axis];
  int32_t dim = a->dim - (s->type.rank - type->rank);
  return dim < 0 || type->dims[dim] == 1 ? 0 : steps[dim] * a->scale;
}

int32_t tn_tile_manner(const tn_tile_space *s, const tn_type *type, int32_t first) {
  int64_t steps[TN_MAX_RANK], follows = 1;
  const tn_tile_axis *inner = &s->axis[s->n_axes - 1];
  bool can_follow = true, can_stay = true, can_go_round = s->n_axes > s->type.rank && inner->extent % 8 == 0;
  tn_tile_steps(type, steps);
  for (int32_t i = s->n_axes - 1; i >= first; i--) {
    int64_t stride = stride_of(s, type, steps, i), extent = s->axis[i].extent;
    if (extent == 1) continue;
    can_follow = can_follow && stride == follows;
    can_stay = can_stay && stride == 0;
    can_go_round = can_go_round && stride == (i == s->n_axes - 1 ? 1 : 0);
    follows *= extent;
  }
  return can_stay ? TILE_STAYS : can_follow ? TILE_FOLLOWS : can_go_round ? TILE_GOES_ROUND : TILE_WANDERS;
}

static bool none_wanders(const tn_tile_space *s, const tn_type *const *types, int32_t n, int32_t first) {
  for (int32_t i = 0; i < n; i++) {
    if (types[i] == NULL || tn_type_same_dims(types[i], &s->type)) continue;
    if (tn_tile_manner(s, types[i], first) == TILE_WANDERS) return false;
  }
  return true;
}

void tn_tile_space_cut(tn_tile_space *s, const tn_type *const *types, int32_t n) {
  int64_t left = s->count;
  for (int32_t first = 0; first < s->n_axes; first++) {
    if (first > 0 && left < TILE_LEAST_SEGMENT) return;
    if (none_wanders(s, types, n, first)) {
      s->first = first;
      s->segment = left;
      return;
    }
    left /= s->axis[first].extent > 0 ? s->axis[first].extent : 1;
  }
}

int64_t tn_tile_cycle(const tn_tile_space *s, const tn_type *type) {
  int64_t steps[TN_MAX_RANK], length = 1;
  int32_t i = s->n_axes - 1;
  tn_tile_steps(type, steps);
  for (; i >= 0 && (s->axis[i].extent == 1 || stride_of(s, type, steps, i) == length); i--)
    length *= s->axis[i].extent;
  for (; i >= 0; i--)
    if (s->axis[i].extent != 1 && stride_of(s, type, steps, i) != 0) return 0;
  return length;
}

/* ---- maps ---- */

/* One more inner dimension, merged with the one before where the walk just goes on. */
static void add_dimension(tn_tile_map *map, int64_t extent, int64_t stride) {
  int32_t last = map->rank - 1;
  if (extent == 1) return;
  if (last >= 0 && map->strides[last] == extent * stride) {
    map->dims[last] *= extent;
    map->strides[last] = stride;
    return;
  }
  map->dims[map->rank] = extent;
  map->strides[map->rank++] = stride;
}

tn_tile_map tn_tile_map_of(const tn_tile_space *s, const tn_type *type, const int64_t *steps, int32_t from,
                           int32_t to) {
  tn_tile_map map = {.rank = 0};
  for (int32_t i = from; i < to; i++) add_dimension(&map, s->axis[i].extent, stride_of(s, type, steps, i));
  if (map.rank == 0) map = (tn_tile_map){.rank = 1, .dims = {1}, .strides = {0}};
  return map;
}

tn_tile_walk tn_tile_walk_to(const tn_tile_map *map, int64_t position) {
  tn_tile_walk w = {map, {0}, 0};
  for (int32_t i = map->rank - 1; i >= 0; i--) {
    w.at[i] = i > 0 ? position % map->dims[i] : position;
    position /= map->dims[i];
    w.offset += w.at[i] * map->strides[i];
  }
  return w;
}

int64_t tn_tile_offset(const tn_tile_map *map, int64_t position) {
  return tn_tile_walk_to(map, position).offset;
}

int64_t tn_tile_walk_run(const tn_tile_walk *w, int64_t n) {
  int32_t inner = w->map->rank - 1;
  int64_t left = inner > 0 ? w->map->dims[inner] - w->at[inner] : n;
  return left < n ? left : n;
}

void tn_tile_walk_on(tn_tile_walk *w, int64_t n) {
  const tn_tile_map *map = w->map;
  int32_t i = map->rank - 1;
  w->at[i] += n;
  w->offset += n * map->strides[i];
  for (; i > 0 && w->at[i] == map->dims[i]; i--) {
    w->offset += map->strides[i - 1] - map->dims[i] * map->strides[i];
    w->at[i] = 0;
    w->at[i - 1]++;
  }
}

void tn_tile_indices(const tn_tile_map *map, int64_t at, int64_t n, int64_t *to) {
  int64_t step = map->strides[map->rank - 1];
  tn_tile_walk w = tn_tile_walk_to(map, at);
  while (n > 0) {
    int64_t run = tn_tile_walk_run(&w, n);
    for (int64_t k = 0; k < run; k++) to[k] = w.offset + k * step;
    tn_tile_walk_on(&w, run);
    to += run;
    n -= run;
  }
}
