/* core/compile/memory/memory_plan.h: the memory plan of a cover: the order of the launches and a location for
 * every value. tn_plan_make runs these phases:
 *
 *   assign_buffers         a buffer for every value. Views share their operand's, packs contain buffers,
 *                          constants have fixed locations, commits and outputs ask for them. Adds groups
 *                          for copies and zeros
 *   collectives_in_place   the operand of a collective gets the location of its result
 *   schedule               the order of the groups
 *   place_transfers        the launches of the copies of offloaded values and of streamed weights
 *   commits_in_place       a commit that cannot be in place becomes a copy at the end
 *   fallback_segments      cuts around groups that fall back, with copies between device and host
 *   reuse_buffers          live intervals; a result reuses the buffer of an operand that dies
 *   overlap_streams        the steps that run concurrently with a collective or a copy of an offloaded value,
 *                          and the step that awaits it
 *   arena_offsets          offsets in the arena (packing/pack_intervals.h)
 *   host_offsets           offsets in the host memory
 *   offload_offsets        offsets in the host memory of offloaded values, and of values of placed groups */
#pragma once

#include "core/compile/memory/location.h"
#include "core/compile/packing/pack_intervals.h"
#include "core/compile/select/cover.h"
#include "core/compile/state_map.h"
#include "core/compile/step.h"

/* Storage with one live interval. */
typedef struct tn_buffer {
  int64_t bytes;
  int32_t parent; /* the buffer that contains this one; -1: this is a root */
  int64_t offset; /* bytes into the parent */
  bool fixed;     /* `location` is final: inputs, states, outputs */
  tn_location location;
  int32_t commit;     /* index into tn_plan.commits: the buffer should get that state's location; -1 */
  int32_t writer;     /* the group that writes the buffer; -1: no group, or the writers of its parts */
  int32_t first_part; /* packs: the list of the buffers in it, linked by next_part; -1 */
  int32_t next_part;
  bool pack;
  int32_t first, last; /* roots: the live interval, in steps; first > last: no step uses the buffer */
  int32_t copied;      /* roots: the step before which copies to the host have ended; 0: nothing is copied */
  int32_t image;       /* index into tn_plan.images: the copy on the host; -1 */
} tn_buffer;

/* The copy of a buffer on the host, which steps on the fallback read or write. It stays until the last cut
 * that reads it, so that no value is transferred twice. */
typedef struct tn_image {
  int64_t bytes, offset; /* offset in the host memory */
  int32_t first, last;   /* live interval, in steps */
} tn_image;

/* A value that is copied between device and host. */
typedef struct tn_plan_transfer {
  tn_val value;
  int32_t step; /* the step on the fallback that reads or makes it */
} tn_plan_transfer;

/* As tn_segment. */
typedef struct tn_plan_segment {
  int32_t first, n; /* steps */
  bool fallback, placed;
  int32_t reads;                            /* as tn_segment */
  tn_awaits awaits;                         /* of the segment's end */
  int32_t first_out, n_out, first_in, n_in; /* in tn_plan.out and tn_plan.in */
} tn_plan_segment;

/* An order in addition to that of the data: `to` overwrites a value that `from` reads. */
typedef struct tn_plan_edge {
  int32_t from, to; /* groups */
} tn_plan_edge;

/* A commit that the program executes. */
typedef struct tn_plan_commit {
  const char *path;
  tn_val value;
  tn_location location; /* of the state */
  int64_t bytes;
} tn_plan_commit;

/* The slot of another program, whose inputs keep their offsets. */
typedef struct tn_slot_layout {
  const tn_binding *inputs;
  int32_t n_inputs;
  int64_t bytes;
  bool all;             /* the program has all these inputs, also those that it does not read */
  int64_t first_output; /* the offset of its first output, behind those of other programs */
} tn_slot_layout;

typedef struct tn_plan {
  tn_env *env;
  tn_cover *cover;
  const tn_state_map *map;
  const tn_slot_layout
      *slot;        /* inputs of these names get the same offsets; NULL: the program has its own slot */
  bool keeps_packs; /* small packs with gaps have memory of their own, so that zeros fill the gaps once */
  int64_t guard;    /* unused bytes around every buffer of the arena and every output */
  tn_packing_goal packing;   /* of the arena */
  tn_arena arena;            /* memory of the plan's own arrays */
  TN_VEC(int32_t) buffer_of; /* per value: its buffer; -1: the value exists only inside of a kernel */
  TN_VEC(tn_buffer) buffers;
  TN_VEC(tn_plan_commit) commits;
  TN_VEC(int64_t) commits_end; /* per region, as far as there are commits: the end of the furthest one */
  TN_VEC(tn_plan_edge) edges;
  TN_VEC(int64_t) key;   /* per group: its rank in the order of the graph */
  TN_VEC(int32_t) order; /* the groups in launch order: per step, its group */
  TN_VEC(tn_binding) inputs, outputs;
  TN_VEC(tn_image) images;
  TN_VEC(tn_plan_segment) segments;
  TN_VEC(tn_plan_transfer) out, in; /* out of the device and into it, in the order of the segments */
  int64_t slot_bytes, output_bytes, arena_bytes, host_bytes, constant_bytes, offload_bytes;
  int64_t bound_bytes; /* a lower bound of arena_bytes: the most bytes that are live at one step */
  tn_awaits *awaits;   /* per step */
  int32_t *ends;       /* per group: of an offload, the group before which its copy must have ended; -1. NULL:
                          there are no offloads. That of a placed one is a prediction */
  int64_t *workspace;  /* per step: offset of the workspace in the arena, or in the host memory */
} tn_plan;

/* Makes a plan of which env, cover, map, slot, keeps_packs, guard, packing and arena are set. Adds groups to
 * the cover. */
tn_status tn_plan_make(tn_plan *plan);
void tn_plan_free(tn_plan *plan);

/* ---- the phases ---- */

tn_status tn_plan_assign_buffers(tn_plan *plan);
tn_status tn_plan_collectives_in_place(tn_plan *plan);
tn_status tn_plan_schedule(tn_plan *plan);
tn_status tn_plan_commits_in_place(tn_plan *plan);
tn_status tn_plan_fallback_segments(tn_plan *plan);
tn_status tn_plan_reuse_buffers(tn_plan *plan);
tn_status tn_plan_place_transfers(tn_plan *plan);
tn_status tn_plan_overlap_streams(tn_plan *plan);
tn_status tn_plan_arena_offsets(tn_plan *plan);
tn_status tn_plan_host_offsets(tn_plan *plan);
tn_status tn_plan_offload_offsets(tn_plan *plan);

/* ---- buffers.c: helpers of the phases ---- */

/* The root of a buffer's chain of parents; *offset is the buffer's offset in it. */
int32_t tn_plan_root(const tn_plan *plan, int32_t buffer, int64_t *offset);
/* The location of a value on the device, after the last phase. */
tn_location tn_plan_location(const tn_plan *plan, tn_val value);
/* The predicted time of a run, with the waits of compute for other streams; after the last phase. */
double tn_plan_predict_s(const tn_plan *plan);
/* The location of a value for a step on the fallback. */
tn_location tn_plan_host_location(const tn_plan *plan, tn_val value);
/* The bytes of a value in its layout. */
int64_t tn_plan_value_bytes(const tn_plan *plan, tn_val value);

static inline const tn_group *tn_plan_group_at(const tn_plan *plan, int32_t step) {
  return &plan->cover->groups.v[plan->order.v[step]];
}

/* Whether a buffer with a fixed location overlaps bytes at a location, on some rank. */
bool tn_buffer_overlaps(const tn_plan *plan, const tn_buffer *buffer, const tn_location *location,
                        int64_t bytes);
/* The region in whose memory a state region lies: another one, or itself. */
int32_t tn_plan_region_around(const tn_plan *plan, int32_t region);
/* Whether the value's buffer has one writer, all of it, and no location that another phase has decided. */
bool tn_plan_is_free(const tn_plan *plan, tn_val value);

/* Adds a buffer for a value that a group writes (-1: no group). */
tn_status tn_plan_add_buffer(tn_plan *plan, tn_val value, int32_t writer, int32_t *buffer);
/* Adds a group with one result, at `key` in the order of the graph, and a buffer for the result. */
tn_status tn_plan_add_group(tn_plan *plan, const tn_group *group, int64_t key, int32_t *buffer);
/* Adds a group that copies a value, and a buffer for the copy: on the device, or on the host. In the order of
 * the graph it comes directly after the value's writer, or at `entry_key` if no group writes the value. */
tn_status tn_plan_add_copy(tn_plan *plan, tn_val value, bool host, int64_t entry_key, int32_t *buffer);
/* Whether a location is in a region in memory of the host. */
static inline bool tn_plan_is_host_region(const tn_plan *plan, const tn_location *location) {
  return location->base == TN_BASE_REGION && tn_region_is_far(&plan->map->regions.v[location->region]);
}
/* Gives the results of placed groups that have no location memory of the host, where offloaded values are. */
void tn_plan_fix_placed_result(tn_plan *plan, int32_t buffer);
/* Whether a group copies a value to the host, or back, for a placed group. */
bool tn_plan_is_placed_transfer(const tn_group *group, int32_t transfer);
/* Whether a group fetches a streamed state (rematerialization/stream_states.h). */
bool tn_plan_is_streamed_fetch(const tn_plan *plan, const tn_group *group);

/* ---- lower_packs.c, a part of assign_buffers ---- */

/* Makes the operands of packs parts of their buffers: an operand with a free buffer is made in place, others
 * are copied; gaps are filled with zeros. */
tn_status tn_plan_lower_packs(tn_plan *plan);
