/* core/compile/memory/memory_plan.h: the work of tn_program_create: where values lie and in which order
 * groups run.
 *
 *   place     buffers for values: views share, packs contain, commits and outputs want a fixed place;
 *             copies and zeros that this takes become groups
 *   adopt     operands of collectives lie where their results do
 *   schedule  the order of the groups
 *   settle    commits that cannot be in place after all end as copies
 *   segment   cuts around what falls back: copies between the sides, and images of buffers on the host
 *   share     results take over the buffers of operands that die
 *   overlap   what runs beside a collective, and what awaits it
 *   arena     offsets in the arena (offsets.h)
 *   segment   offsets in the host memory */
#ifndef TN_CORE_COMPILE_MEMORY_MEMORY_PLAN_H
#define TN_CORE_COMPILE_MEMORY_MEMORY_PLAN_H

#include "core/compile/program.h"

enum { TN_PLAN_ALIGN = 64 };

/* Storage that has one lifetime. */
typedef struct tn_buffer {
  int64_t bytes;
  int32_t parent; /* buffer in which it lies, -1 */
  int64_t offset; /* bytes into the parent */
  bool fixed;     /* `place` is decided: input, state, output */
  tn_place place;
  int32_t commit;     /* index into tn_plan.commits whose place it wants, -1 */
  int32_t writer;     /* group that writes it; -1: nobody, or its parts' writers */
  int32_t first_part; /* packs: the chain of buffers that lie in it, -1 */
  int32_t next_part;
  bool pack;
  int32_t first, last; /* steps that use it; first > last: none. Of roots */
  int32_t image;       /* index into tn_plan.images: its copy on the host, -1 */
} tn_buffer;

/* A buffer's copy on the host, where a step that falls back reads or writes it. It stays until the last
 * cut that reads it, so that no value crosses the bus twice. */
typedef struct tn_image {
  int64_t bytes, offset;
  int32_t first, last; /* steps */
} tn_image;

/* A value that is copied to the other side. */
typedef struct tn_plan_transfer {
  tn_val value;
  int32_t step; /* that reads or makes it */
} tn_plan_transfer;

typedef struct tn_plan_segment {
  int32_t first, n; /* steps */
  bool fallback;
  int32_t awaits;                           /* the collective whose end is the segment's, -1 */
  int32_t first_out, n_out, first_in, n_in; /* in tn_plan.out and in */
} tn_plan_segment;

/* An order beyond that of data: `to` overwrites what `from` reads. */
typedef struct tn_plan_edge {
  int32_t from, to; /* groups */
} tn_plan_edge;

/* A commit that is to be carried out, with the place of its state. */
typedef struct tn_plan_commit {
  const char *path;
  tn_val value;
  tn_place place;
  int64_t bytes;
} tn_plan_commit;

typedef struct tn_plan {
  tn_env *env;
  tn_cover *cover;
  const tn_state_map *map;
  tn_arena arena;
  TN_VEC(int32_t) buffer_of; /* per value; -1: inside a kernel */
  TN_VEC(tn_buffer) buffers;
  TN_VEC(tn_plan_commit) commits;
  TN_VEC(tn_plan_edge) edges;
  TN_VEC(int64_t) key;   /* per group: its place in the order of the graph */
  TN_VEC(int32_t) order; /* the groups as steps */
  TN_VEC(tn_binding) inputs, outputs;
  TN_VEC(tn_image) images;
  TN_VEC(tn_plan_segment) segments;
  TN_VEC(tn_plan_transfer) out, in; /* of the device, and into it; in the order of the segments */
  int64_t slot_bytes, output_bytes, arena_bytes, bound_bytes, host_bytes;
  int64_t guard;      /* bytes kept free on either side of what lies in the arena or is an output */
  int32_t *awaits;    /* per step: the collective, a step before it, that it awaits; -1 */
  int64_t *workspace; /* per step: offset in the arena, or in the host memory */
} tn_plan;

/* All of it, for a plan of which env, cover, map and arena are set. */
tn_status tn_plan_make(tn_plan *plan);
void tn_plan_free(tn_plan *plan);

tn_status tn_plan_place(tn_plan *plan);
tn_status tn_plan_adopt(tn_plan *plan);
tn_status tn_plan_schedule(tn_plan *plan);
tn_status tn_plan_settle(tn_plan *plan);
tn_status tn_plan_segment_steps(tn_plan *plan);
tn_status tn_plan_share(tn_plan *plan);
tn_status tn_plan_overlap(tn_plan *plan);
tn_status tn_plan_arena(tn_plan *plan);
tn_status tn_plan_host(tn_plan *plan);

/* The buffer at the end of the chain of parents, and the bytes into it. */
int32_t tn_plan_root(const tn_plan *plan, int32_t buffer, int64_t *offset);
/* Where a value lies, once everything is assigned. */
tn_place tn_plan_place_of(const tn_plan *plan, tn_val value);
/* The same for a step that falls back. */
tn_place tn_plan_host_place_of(const tn_plan *plan, tn_val value);
/* A value's bytes in memory. */
int64_t tn_plan_value_bytes(const tn_plan *plan, tn_val value);
/* A copy group of `value` whose result gets a buffer of its own. In the order of the graph it stands right
 * after the value's maker, or at `entry_key` where the value is there from the start. */
tn_status tn_plan_add_copy(tn_plan *plan, tn_val value, int64_t entry_key, int32_t *buffer);
/* Whether a fixed buffer overlaps bytes of a region. */
bool tn_buffer_overlaps(const tn_buffer *buffer, const tn_place *place, int64_t bytes);
static inline int64_t tn_plan_aligned(int64_t bytes) {
  return (bytes + TN_PLAN_ALIGN - 1) / TN_PLAN_ALIGN * TN_PLAN_ALIGN;
}

#endif
