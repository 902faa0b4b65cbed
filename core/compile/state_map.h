/* core/compile/state_map.h: where every state of a run lies. All programs of a run share one map.
 *
 * Trained parameters, in the order in which their gradients become ready, lie contiguous in the
 * region "param.f32"; each optimizer slot has a region of the same offsets ("momentum.f32"); other
 * state lies in "state.DTYPE" regions. A region as a whole is a rank-1 state with the path
 * "@param.f32", so the optimizer is one kernel over it. */
#ifndef TN_CORE_COMPILE_STATE_MAP_H
#define TN_CORE_COMPILE_STATE_MAP_H

#include "core/graph/graph.h"
#include "core/graph/hash_index.h"

enum { TN_REGION_ALIGN_ELEMENTS = 16 }; /* every parameter starts at a multiple of this */

typedef struct tn_placement {
  const char *path;
  tn_type type;
  int32_t what; /* TN_STATE_... */
  const char *init, *where;
  int32_t region;
  int64_t offset;   /* in elements */
  tn_layout layout; /* unset: row-major; otherwise one without padding */
} tn_placement;

typedef struct tn_region {
  const char *name; /* without '@' */
  int32_t dtype;
  int64_t count;      /* elements, padding included; gaps are zero */
  tn_placement whole; /* the region as a state of its own */
  int32_t like;       /* the region whose states these go with, offset for offset; -1: none */
} tn_region;

typedef struct tn_state_map {
  tn_env *env;
  tn_arena arena;
  TN_VEC(tn_placement) states;
  TN_VEC(tn_region) regions;
  tn_hash_index by_path; /* into states */
} tn_state_map;

tn_status tn_state_map_create(tn_env *env, tn_state_map **map);
void tn_state_map_destroy(tn_state_map *map);
/* Index of the region, made if new. */
tn_status tn_state_map_region(tn_state_map *map, const char *name, int32_t dtype, int32_t *region);
/* Places a state at the end of a region (aligned; offset -1), or at `offset` >= 0 of it. Nothing happens
 * if the path is there already with the same type; another type is TN_EINVAL. "@REGION" is there as
 * soon as the region is, with the size that it has by now. */
tn_status tn_state_map_add(tn_state_map *map, const tn_gstate *state, int32_t region, int64_t offset);
/* Makes a region at least `count` elements long. */
void tn_state_map_extend(tn_state_map *map, int32_t region, int64_t count);
/* A region's states lie where those of another lie, and as they do: an optimizer's slots beside parameters.
 */
void tn_state_map_follow(tn_state_map *map, int32_t region, int32_t like);
/* The state at an offset of a region, other than the region itself; NULL if there is none. */
const tn_placement *tn_state_map_at(const tn_state_map *map, const char *region, int64_t offset);
/* Whether one of two states goes with the other, or both with a third; a state goes with itself. */
bool tn_state_map_are_parallel(const tn_state_map *map, const tn_placement *a, const tn_placement *b);
/* Gives a state and all that go with it a layout. It must have no padding, and no program may have been
 * compiled for the map. */
void tn_state_map_lay(tn_state_map *map, const tn_placement *state, const tn_layout *layout);
/* NULL if there is none. Valid until the map grows. */
const tn_placement *tn_state_map_find(const tn_state_map *map, const char *path);
/* Adds every state of a graph that is not there yet to "state.DTYPE"; derived ones are placed by who
 * derives them. */
tn_status tn_state_map_add_rest(tn_state_map *map, const tn_graph *graph);
int64_t tn_state_map_bytes(const tn_state_map *map);

#endif
