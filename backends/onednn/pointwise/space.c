/* The order in which a region's elements lie, how operands go along it, and the segments into which that cuts
 * it (program.h). */
#include "backends/onednn/pointwise/program.h"

/* ---- spaces ---- */

static bool space_is_plain(const tn_layout *layout, int32_t rank) {
  for (int32_t i = 0; i < rank && layout->set; i++)
    if (layout->order[i] != i) return false;
  return true;
}

static void space_order(tn_pw_space *s, const tn_type *type, const tn_layout *layout) {
  for (int32_t i = 0; i < type->rank; i++)
    s->axis[i] = (tn_pw_axis){layout->order[i], type->dims[layout->order[i]], 1};
}

bool tn_tile_space_of(const tn_type *type, const tn_layout *layout, tn_pw_space *s) {
  bool blocked = layout != NULL && layout->set && layout->n_blocks > 0;
  int64_t size = blocked ? layout->block[0].size : 1;
  *s = tn_pw_space_row_major(type);
  if (layout != NULL && layout->set && !blocked) space_order(s, type, layout);
  if (!blocked) return true;
  if (!space_is_plain(layout, type->rank)) return false;
  if (layout->n_blocks > 1 || layout->block[0].dim != 1 || type->rank < 2) return false;
  if ((size != 8 && size != 16) || type->dims[1] % size != 0) return false;
  s->axis[1] = (tn_pw_axis){1, type->dims[1] / size, size};
  s->axis[s->n_axes++] = (tn_pw_axis){1, size, 1};
  return true;
}

tn_pw_space tn_tile_space_flat(const tn_type *type, const tn_layout *layout) {
  int64_t dims[TN_MAX_RANK] = {0}, count = 1;
  for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i];
  for (int32_t i = 0; layout != NULL && i < layout->n_blocks; i++) {
    const tn_block *block = &layout->block[i];
    dims[block->dim] = (dims[block->dim] + block->size - 1) / block->size;
    count *= block->size;
  }
  for (int32_t i = 0; i < type->rank; i++) count *= dims[i];
  return (tn_pw_space){.type = *type, .n_axes = 1, .count = count, .axis = {{0, count, 1}}};
}

/* ---- segments ---- */

int32_t tn_tile_manner(const tn_pw_space *s, const tn_type *type, int32_t first) {
  int64_t steps[TN_MAX_RANK], follows = 1;
  const tn_pw_axis *inner = &s->axis[s->n_axes - 1];
  bool can_follow = true, can_stay = true, can_go_round = s->n_axes > s->type.rank && inner->extent % 8 == 0;
  tn_pw_steps(type, steps);
  for (int32_t i = s->n_axes - 1; i >= first; i--) {
    int64_t stride = tn_pw_stride(s, type, steps, i), extent = s->axis[i].extent;
    if (extent == 1) continue;
    can_follow = can_follow && stride == follows;
    can_stay = can_stay && stride == 0;
    can_go_round = can_go_round && stride == (i == s->n_axes - 1 ? 1 : 0);
    follows *= extent;
  }
  if (can_stay || can_follow) return can_stay ? TILE_STAYS : TILE_FOLLOWS;
  if (can_go_round) return TILE_GOES_ROUND;
  int64_t cycle = tn_tile_cycle(s, type, first);
  return first > 0 && cycle > 0 && cycle < TILE_LEAST_SEGMENT ? TILE_REPEATS : TILE_WANDERS;
}

static bool space_none_wanders(const tn_pw_space *s, const tn_type *const *types, int32_t n, int32_t first) {
  for (int32_t i = 0; i < n; i++) {
    if (types[i] == NULL || tn_type_same_dims(types[i], &s->type)) continue;
    if (tn_tile_manner(s, types[i], first) == TILE_WANDERS) return false;
  }
  return true;
}

int32_t tn_tile_space_cut(const tn_pw_space *s, const tn_type *const *types, int32_t n) {
  int64_t left = s->count;
  for (int32_t first = 0; first < s->n_axes; first++) {
    if (first > 0 && left < TILE_LEAST_SEGMENT) return 0;
    if (space_none_wanders(s, types, n, first)) return first;
    left /= s->axis[first].extent > 0 ? s->axis[first].extent : 1;
  }
  return 0;
}

int64_t tn_tile_cycle(const tn_pw_space *s, const tn_type *type, int32_t first) {
  int64_t steps[TN_MAX_RANK], length = 1;
  int32_t i = s->n_axes - 1;
  tn_pw_steps(type, steps);
  for (; i >= first && (s->axis[i].extent == 1 || tn_pw_stride(s, type, steps, i) == length); i--)
    length *= s->axis[i].extent;
  for (; i >= first; i--)
    if (s->axis[i].extent != 1 && tn_pw_stride(s, type, steps, i) != 0) return 0;
  return length;
}
