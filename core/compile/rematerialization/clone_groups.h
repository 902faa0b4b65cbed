/* core/compile/rematerialization/clone_groups.h: what must run again in the second half of a cover so that
 * values of the first need not be kept, and the cover in which it does. */
#ifndef TN_CORE_COMPILE_REMATERIALIZATION_CLONE_GROUPS_H
#define TN_CORE_COMPILE_REMATERIALIZATION_CLONE_GROUPS_H

#include "core/compile/rematerialization/forward_backward.h"

typedef struct tn_again {
  const tn_halves *halves;
  bool *given_up; /* per value of the first half: the caller's choice */

  /* what follows from it */
  bool possible;
  bool *made;   /* per value: made again, because it was given up or for another that was */
  bool *cloned; /* per group */
  int32_t *at;  /* per cloned group: the group of the second half before which it runs again */
  bool *longer; /* per value: kept for the clones alone */
  int64_t longer_bytes;
  double cost_s, flops; /* of the clones */

  /* scratch */
  tn_val *stack, *twin, *inner;
  int32_t *moved; /* per group: where it stands in the new cover */
} tn_again;

tn_status tn_again_create(const tn_halves *halves, tn_arena *arena, tn_again *again);

/* Works out what follows from `given_up`. */
void tn_again_follow(tn_again *again);

/* Rewrites the cover, which must be as the halves know it: clones are inserted and read in the place of
 * what was given up. moved[g] says where group g stands. */
tn_status tn_again_apply(tn_again *again);

#endif
