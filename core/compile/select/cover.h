/* core/compile/select/cover.h: a cover: the graph, partitioned into groups that each have a kernel.
 *
 * Pass `select` makes it, and the passes after it rewrite it. Nodes that need no kernel (inputs, states,
 * views, packs) and those of constants belong to no group; the memory plan gives their results a location. A
 * group may also recompute nodes of another one (tn_group.shared), and after rematerialization a node may
 * belong to two groups. */
#pragma once

#include "core/compile/kernels/group.h"
#include "core/compile/kernels/target.h"

/* A block of the model with values that are rematerialized (rematerialization/memory_limit.h). */
typedef struct tn_rematerialized_block {
  const char *block; /* "layer1.0" */
  int64_t bytes;     /* of the values that are not kept */
  double flops;      /* of the groups that run a second time */
} tn_rematerialized_block;

typedef struct tn_cover {
  tn_env *env;
  tn_arena arena;               /* holds the arrays that groups point to */
  struct tn_catalog *catalog;   /* owned: the target's kernels (catalog.h) */
  struct tn_catalog *fallback;  /* owned: the kernels of the target's fallback; NULL if it has no fallback */
  tn_graph *graph;              /* owned; composites without a kernel are decomposed */
  TN_VEC(tn_group) groups;      /* in topological order */
  TN_VEC(tn_group) constants;   /* launched once (constant_groups.h), in topological order */
  bool keeps_constants;         /* pass `constants` has run */
  struct tn_loop_bodies *loops; /* owned: compiled bodies of its loops (loop_kernel.h); NULL: none */
  const tn_rematerialized_block *rematerialized;
  int32_t n_rematerialized;
  double rematerialized_s; /* of the groups that run a second time */
  /* 1 + the last group of forward, where values are offloaded: their copies to the host end before it, those
   * back begin after it. 0: no value is */
  int32_t offload_midpoint;
  int64_t arena_limit; /* bytes that the arena should not exceed; 0: no limit */
} tn_cover;

/* Accepts NULL. */
void tn_cover_destroy(tn_cover *cover);

/* Sets the `group` of every node after groups were added or moved: the first group that has the node and does
 * not only share it, or -1. */
void tn_cover_number_groups(tn_cover *cover);
