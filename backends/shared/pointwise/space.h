/* backends/shared/pointwise/space.h: walks through memory. The elements of a region are walked in one order,
 * the axes of its space; a map says where the elements of a tensor are that is repeated (broadcast) to the
 * space. */
#pragma once

#include <stdbool.h>

#include "tenon/base.h"

/* `extent` positions, one step of which is `scale` elements along dimension `dim`. A dimension that is cut
 * into blocks has two axes. */
typedef struct tn_pw_axis {
  int32_t dim;
  int64_t extent, scale;
} tn_pw_axis;

enum { TN_PW_AXES = TN_MAX_RANK + 1 };

typedef struct tn_pw_space {
  tn_type type; /* of the region; its dtype does not matter */
  int32_t n_axes;
  int64_t count; /* positions */
  tn_pw_axis axis[TN_PW_AXES];
  bool row_major_operands; /* operands of the region's dimensions lie so; else as the results do */
} tn_pw_space;

/* A walk in step with the space's: position p = ((p0 * dims[1] + p1) * dims[2] + p2) ... is the element
 * p0 * strides[0] + p1 * strides[1] + ... Neighbouring dimensions are merged. The outermost dimension has no
 * end, since storage with padding is longer than the space. */
typedef struct tn_pw_map {
  int32_t rank; /* at least 1 */
  int64_t dims[TN_PW_AXES], strides[TN_PW_AXES];
} tn_pw_map;

/* How a tensor meets the space: element by element, with one value for all positions, or along a walk. */
enum { TN_PW_SAME, TN_PW_SCALAR, TN_PW_REPEATED };

static inline int32_t tn_pw_access_of(const tn_pw_map *map) {
  if (map->rank > 1 || map->strides[0] > 1) return TN_PW_REPEATED;
  return map->strides[0] == 1 ? TN_PW_SAME : TN_PW_SCALAR;
}

static inline bool tn_pw_is_single(const tn_type *type) { return tn_type_count(type) == 1; }

bool tn_pw_broadcasts(const tn_type *type, const tn_type *to);
tn_pw_space tn_pw_space_row_major(const tn_type *type);
/* Counts the positions of a space whose axes are set. */
void tn_pw_space_count(tn_pw_space *space);
/* Row-major strides of a type's dimensions. */
void tn_pw_steps(const tn_type *type, int64_t *steps);
/* Elements for a step along an axis, in a tensor whose dimensions have these strides. */
int64_t tn_pw_stride(const tn_pw_space *space, const tn_type *type, const int64_t *steps, int32_t axis);
/* The walk of that tensor over the axes from .. to - 1. */
tn_pw_map tn_pw_map_of(const tn_pw_space *space, const tn_type *type, const int64_t *steps, int32_t from,
                       int32_t to);

/* ---- a place on a walk ---- */

typedef struct tn_pw_walk {
  const tn_pw_map *map;
  int64_t at[TN_PW_AXES]; /* coordinates */
  int64_t offset;         /* of the element there */
} tn_pw_walk;

static inline tn_pw_walk tn_pw_walk_to(const tn_pw_map *map, int64_t position) {
  tn_pw_walk w = {map, {0}, 0};
  for (int32_t i = map->rank - 1; i >= 0; i--) {
    w.at[i] = i > 0 ? position % map->dims[i] : position;
    position /= map->dims[i];
    w.offset += w.at[i] * map->strides[i];
  }
  return w;
}

/* How many elements follow with the stride of the innermost dimension, at most n. */
static inline int64_t tn_pw_walk_run(const tn_pw_walk *w, int64_t n) {
  int32_t inner = w->map->rank - 1;
  int64_t left = inner > 0 ? w->map->dims[inner] - w->at[inner] : n;
  return left < n ? left : n;
}

/* Goes n elements on, n being at most the last tn_pw_walk_run. */
static inline void tn_pw_walk_on(tn_pw_walk *w, int64_t n) {
  const tn_pw_map *map = w->map;
  int32_t i = map->rank - 1;
  w->at[i] += n;
  w->offset += n * map->strides[i];
  for (; i > 0 && w->at[i] == map->dims[i]; i--) {
    w->offset += map->strides[i - 1] - map->dims[i] * map->strides[i];
    w->at[i] = 0;
    w->at[i - 1]++;
  }
}

/* The element at each of n positions from `at` on. */
void tn_pw_indices(const tn_pw_map *map, int64_t at, int64_t n, int64_t *to);
