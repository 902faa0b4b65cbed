/* core/compile/state_map.h: the location and layout of every state of a run. All programs of a run share one
 * map.
 *
 * Trained parameters are contiguous in the region "param.f32", in the order in which their gradients become
 * ready; those with gradients in f16 in "param.f32.f16". Each kind of optimizer state has regions with the
 * same offsets ("momentum.f32"). Other states are in regions "state.DTYPE". A region itself is a rank-1 state
 * with the path "@param.f32", so an optimizer is one kernel over it.
 *
 * A region may be divided among ranks: rank r of n holds the elements from r * count / n on, and as a state
 * it is that part. The states in it have offsets in the whole region. Where another region has copies of all
 * its elements in the same dtype, the part lies inside of that region.
 *
 * A region may lie in memory of the host. Of those of [optimizer] place the host computes what depends on
 * them; weights that are streamed ([run] offload) go to the device in each run, ahead of the launches that
 * read them. */
#pragma once

#include "core/graph/graph.h"

enum { TN_REGION_ALIGN_ELEMENTS = 16 }; /* states start at a multiple of this, unless a region has another */

/* A state in the map. */
typedef struct tn_placement {
  const char *path;
  tn_type type;
  int32_t what;      /* TN_STATE_... */
  const char *init;  /* the initializer */
  const char *where; /* file and line of the configuration */
  int32_t region;    /* index into tn_state_map.regions */
  int64_t offset;    /* in elements */
  tn_layout layout;  /* without padding; unset: row-major */
} tn_placement;

typedef struct tn_region {
  const char *name; /* without '@' */
  int32_t dtype;
  int64_t count; /* elements, with the gaps between states, which are zero */
  int32_t align; /* every state starts at a multiple of this, and so many elements for each rank is it long */
  int32_t shards;     /* ranks among which it is divided; 1: every rank has all of it */
  tn_placement whole; /* the region as a state, on a rank */
  int64_t end;        /* of the state that lies last; `count` may be beyond */
  int32_t like; /* the region that this one is parallel to: states at equal offsets have equal layouts; -1 */
  void *mapped; /* its memory, which the maker of the map owns: a mapped file; NULL: the executor allocates it
                 */
  const char *file; /* that is mapped */
  int32_t inside;   /* of a divided region: the region of whose memory it is the rank's part; -1: none */
  bool host; /* in memory of the host: nodes that read its states run there, and programs that need them on
                the device read copies */
  bool streamed; /* in memory of the host: programs fetch the states that they read (stream_states.h) */
  bool source;   /* with host: weights of which programs read low-precision copies alone, [run] offload */
  bool copies_streamed; /* with source: the copies are in a streamed region */
} tn_region;

typedef struct tn_state_map {
  tn_env *env;
  tn_arena arena;
  TN_VEC(tn_placement) states;
  TN_VEC(tn_region) regions;
  int32_t rank;              /* whose parts of divided regions these are; programs do not depend on it */
  tn_name_index paths;       /* of states */
  tn_hash_index by_location; /* into states, by region and offset */
} tn_state_map;

tn_status tn_state_map_create(tn_env *env, tn_state_map **map);
void tn_state_map_destroy(tn_state_map *map);
/* The index of a region, which is created if it does not exist. */
tn_status tn_state_map_region(tn_state_map *map, const char *name, int32_t dtype, int32_t *region);
/* Adds a state at `offset` of a region, or at its aligned end (offset -1). A path that is in the map already
 * must have the same type; then the map stays as it is. "@REGION" is in the map from the region's creation
 * on, with its present size. */
tn_status tn_state_map_add(tn_state_map *map, const tn_gstate *state, int32_t region, int64_t offset);
/* Sets tn_region.align, before states are added. States of a region whose alignment is above
 * TN_REGION_ALIGN_ELEMENTS are row-major: blocks of their elements have a meaning. */
void tn_state_map_align(tn_state_map *map, int32_t region, int32_t elements);
/* Divides a region among ranks. Its size becomes a multiple of its alignment for each of them. */
void tn_state_map_divide(tn_state_map *map, int32_t region, int32_t ranks);
/* Lets a divided region lie inside of another one of the same dtype and number of elements. */
void tn_state_map_put_inside(tn_state_map *map, int32_t region, int32_t whole);
/* Whether programs read copies of a state in place of it: its region is divided, or in memory of the host. */
bool tn_state_map_is_copied(const tn_state_map *map, const tn_placement *state);
/* Whether nodes that read a state run on the host: tn_region.host. */
bool tn_state_map_on_host(const tn_state_map *map, const tn_placement *state);
/* Whether a state is in memory of the host, where the device does not read it: tn_region_is_far. */
bool tn_state_map_is_far(const tn_state_map *map, const tn_placement *state);
/* Whether programs fetch the states of a graph's path: tn_region.streamed. `map` may be NULL. */
bool tn_state_map_is_streamed(const tn_state_map *map, const char *path);
static inline bool tn_region_is_far(const tn_region *region) { return region->host || region->streamed; }
/* The ranks among which the region of a state is divided. */
int32_t tn_state_map_shards(const tn_state_map *map, const tn_placement *state);
/* The bytes of a region on a rank, and those that are allocated for it on the device: none inside of another
 * one, in a mapped file or in memory of the host. */
size_t tn_region_bytes(const tn_region *region);
size_t tn_region_own_bytes(const tn_region *region);
/* Extends a region to at least `count` elements. */
void tn_state_map_extend(tn_state_map *map, int32_t region, int64_t count);
/* Makes a region parallel to another: states at equal offsets have equal layouts, as optimizer state has the
 * layout of its parameter. */
void tn_state_map_follow(tn_state_map *map, int32_t region, int32_t like);
/* The state that starts at an offset of a region; NULL: no state does. */
const tn_placement *tn_state_map_at(const tn_state_map *map, const char *region, int64_t offset);
/* Whether two states have equal offsets and dims in parallel regions, or are the same state. */
bool tn_state_map_are_parallel(const tn_state_map *map, const tn_placement *a, const tn_placement *b);
/* Gives a state and all parallel states a layout, which must have no padding. No program may have been
 * compiled for the map before. */
void tn_state_map_set_layout(tn_state_map *map, const tn_placement *state, const tn_layout *layout);
/* NULL: there is no such state. Valid until the map grows. */
const tn_placement *tn_state_map_find(const tn_state_map *map, const char *path);
/* Adds the states of a graph that are not in the map to regions "state.DTYPE", but for derived ones, which
 * their maker adds. */
tn_status tn_state_map_add_rest(tn_state_map *map, const tn_graph *graph);
/* On a rank: of the device; of the host; and of these, streamed weights and the sources of copies. */
int64_t tn_state_map_bytes(const tn_state_map *map);
int64_t tn_state_map_host_bytes(const tn_state_map *map);
int64_t tn_state_map_streamed_bytes(const tn_state_map *map);
