#include "backends/shared/pointwise/space.h"

#include <string.h>

bool tn_pw_broadcasts(const tn_type *type, const tn_type *to) {
  int32_t lead = to->rank - type->rank;
  if (lead < 0) return false;
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i] != 1 && type->dims[i] != to->dims[lead + i]) return false;
  return true;
}

void tn_pw_space_count(tn_pw_space *space) {
  space->count = 1;
  for (int32_t i = 0; i < space->n_axes; i++) space->count *= space->axis[i].extent;
}

tn_pw_space tn_pw_space_row_major(const tn_type *type) {
  tn_pw_space space = {.type = *type, .n_axes = type->rank};
  for (int32_t i = 0; i < type->rank; i++) space.axis[i] = (tn_pw_axis){i, type->dims[i], 1};
  tn_pw_space_count(&space);
  return space;
}

void tn_pw_steps(const tn_type *type, int64_t *steps) {
  int64_t step = 1;
  memset(steps, 0, TN_MAX_RANK * sizeof *steps);
  for (int32_t i = type->rank - 1; i >= 0; i--) {
    steps[i] = step;
    step *= type->dims[i];
  }
}

int64_t tn_pw_stride(const tn_pw_space *space, const tn_type *type, const int64_t *steps, int32_t axis) {
  const tn_pw_axis *a = &space->axis[axis];
  int32_t dim = a->dim - (space->type.rank - type->rank);
  return dim < 0 || type->dims[dim] == 1 ? 0 : steps[dim] * a->scale;
}

/* One more inner dimension, merged with the one before where the walk just goes on. */
static void map_add_dimension(tn_pw_map *map, int64_t extent, int64_t stride) {
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

tn_pw_map tn_pw_map_of(const tn_pw_space *space, const tn_type *type, const int64_t *steps, int32_t from,
                       int32_t to) {
  tn_pw_map map = {.rank = 0};
  for (int32_t i = from; i < to; i++)
    map_add_dimension(&map, space->axis[i].extent, tn_pw_stride(space, type, steps, i));
  return map.rank > 0 ? map : (tn_pw_map){.rank = 1, .dims = {1}, .strides = {0}};
}

void tn_pw_indices(const tn_pw_map *map, int64_t at, int64_t n, int64_t *to) {
  int64_t step = map->strides[map->rank - 1];
  tn_pw_walk w = tn_pw_walk_to(map, at);
  while (n > 0) {
    int64_t run = tn_pw_walk_run(&w, n);
    for (int64_t k = 0; k < run; k++) to[k] = w.offset + k * step;
    tn_pw_walk_on(&w, run);
    to += run;
    n -= run;
  }
}
