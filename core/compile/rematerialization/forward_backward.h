/* core/compile/rematerialization/forward_backward.h: a cover seen as two halves, and what the second keeps
 * alive from the first.
 *
 * The turn is the group at which the most bytes lie idle, read before it and again after it. In a step of
 * training that is where forward ends and backward begins, since backward reads what forward left in the
 * opposite order; but nothing here knows of gradients. What lies idle at the turn can be given up and made
 * again by clones of first-half groups that run in the second half (again.h). */
#ifndef TN_CORE_COMPILE_REMATERIALIZATION_FORWARD_BACKWARD_H
#define TN_CORE_COMPILE_REMATERIALIZATION_FORWARD_BACKWARD_H

#include "core/compile/cover.h"

/* A value that lies idle at the turn and could be made again. */
typedef struct tn_kept {
  tn_val value;
  bool border; /* another block of the model reads it in the first half */
} tn_kept;

/* Tables per value count for the value whose memory a view shares; per group as the cover was. */
typedef struct tn_halves {
  tn_env *env;
  tn_cover *cover;
  tn_arena arena;
  tn_group *groups; /* as they were before anything was made again */
  int32_t n_groups, turn;
  size_t n_nodes, n_values;
  tn_val *base;
  int32_t *maker;           /* -1: no group stores it */
  int64_t *bytes;           /* in memory */
  int32_t *start, *readers; /* rows of groups in order; the readers of v begin at start[v] */
  bool *late;               /* a group of the second half reads it, or something that is no group */
  const char **block;       /* per group: "layer1.0" */
  bool *leaf;               /* per group: the block is a single layer */
  bool *repeatable;         /* per group: running it again gives the same bits and has no effect */
  TN_VEC(tn_kept) kept;
} tn_halves;

tn_status tn_halves_create(tn_cover *cover, tn_halves *halves);
void tn_halves_free(tn_halves *halves);

/* The cover as it was when the halves were made. */
void tn_halves_restore(const tn_halves *halves);

/* Whether no group before `group` makes the value of a commit that overwrites a state's value at entry. */
bool tn_halves_state_is_old(const tn_halves *halves, tn_val state, int32_t group);

/* Blocks end where blocks of several layers begin; layers outside of them are one block together. */
bool tn_halves_same_block(const tn_halves *halves, int32_t a, int32_t b);

#endif
