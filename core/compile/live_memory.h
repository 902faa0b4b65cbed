/* core/compile/live_memory.h: the blocks of a program's arena, with the launches from and to which they are
 * live. */
#pragma once

#include "core/base/arena.h"

struct tn_plan;

enum {
  TN_LIVE_ACTIVATION = 0, /* a value between launches: results of forward and of backward */
  TN_LIVE_GRADIENT = 1,   /* gradients of parameters, as vectors that the update reads */
  TN_LIVE_WORKSPACE = 2,  /* memory of a kernel during its launch */
  TN_LIVE_STREAMED = 3,   /* weights that were fetched from memory of the host */
  TN_LIVE_KINDS = 4
};

/* Bytes of the arena, with alignment and guards. Both launches are included; those of constants, before the
 * first launch, are -1 and -1. */
typedef struct tn_live_memory {
  int64_t offset, bytes;
  int32_t first, last; /* launches */
  int32_t kind;        /* TN_LIVE_... */
} tn_live_memory;

typedef struct tn_live_memories {
  const tn_live_memory *v;
  int32_t n;
  int64_t kept_gradients; /* bytes of gradients in the memory of constants, instead of the arena */
} tn_live_memories;

/* Of a plan whose phases have run; in `arena`. The constants have one block, the largest of their workspaces.
 */
tn_status tn_live_memory_list(const struct tn_plan *plan, tn_arena *arena, tn_live_memories *live);

/* The bytes of a kind that are live before the first launch, and then at each of n_steps launches: n_steps +
 * 1 numbers. TN_LIVE_KINDS: of all kinds. */
void tn_live_memory_curve(const tn_live_memories *live, int32_t kind, int32_t n_steps, int64_t *bytes);
