/* core/compile/rematerialization/forward_backward.h: splits a cover into forward and backward, and finds the
 * values that are live between the two.
 *
 * The midpoint is the group at which the most bytes are idle: read before it and again after it. In a
 * training step that is where forward ends, since backward reads the values of forward in the opposite order;
 * but the analysis knows nothing of gradients and works for every cover. Idle values can be discarded and
 * rematerialized by copies of forward groups that run in backward (clone_groups.h). */
#pragma once

#include "core/compile/select/cover.h"

/* A value that is idle at the midpoint. */
typedef struct tn_idle_value {
  tn_val value;
  bool border;     /* another block of the model reads it in forward */
  bool repeatable; /* it could be rematerialized; any could be offloaded */
} tn_idle_value;

/* Tables per value are for the value that owns the memory of a view (view_bases.h); tables per group are for
 * the cover before any rematerialization. */
typedef struct tn_forward_backward {
  tn_env *env;
  tn_cover *cover;
  tn_arena arena;
  tn_group *groups; /* a copy of the cover's groups */
  int32_t n_groups;
  int32_t midpoint;           /* the last group of forward */
  size_t n_nodes, n_values;   /* of the graph */
  tn_val *base;               /* per value: as tn_find_view_bases */
  int32_t *maker;             /* per value: the group that stores it, or -1 */
  int64_t *bytes;             /* per value: in memory */
  int32_t *start, *readers;   /* the readers of value v, groups in order, are readers[start[v]] to
                                 readers[start[v + 1] - 1] */
  bool *read_in_backward;     /* per value: a group of backward reads it, or a pack, commit or output */
  const char **block;         /* per group: the block of the model, "layer1.0" */
  bool *single_layer;         /* per group: the block is a single layer */
  bool *repeatable;           /* per group: running it a second time gives the same bits and has no effect */
  TN_VEC(tn_idle_value) idle; /* in the order of their makers */
} tn_forward_backward;

/* *fb must be freed also after a failure. */
tn_status tn_forward_backward_create(tn_cover *cover, tn_forward_backward *fb);
void tn_forward_backward_free(tn_forward_backward *fb);

/* Restores the cover to its state at tn_forward_backward_create. */
void tn_forward_backward_restore(const tn_forward_backward *fb);

/* Whether a state still has its old value before `group`: no commit that may overwrite it is made earlier. */
bool tn_forward_backward_state_is_old(const tn_forward_backward *fb, tn_val state, int32_t group);

/* Whether two groups belong to one block. All single layers outside of blocks together are one block. */
bool tn_forward_backward_same_block(const tn_forward_backward *fb, int32_t a, int32_t b);
