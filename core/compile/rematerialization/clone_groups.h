/* core/compile/rematerialization/clone_groups.h: rematerializes values: clones the groups of forward that
 * make them into backward; and offloads values: copies them to the host in forward, and back in backward. */
#pragma once

#include "core/compile/rematerialization/forward_backward.h"

/* How a value of forward gets to backward. All false: it is kept. */
typedef struct tn_value_choice {
  bool discarded; /* it is made again */
  bool offloaded; /* it is kept on the host, and not discarded */
  bool awaited;   /* of an offloaded one: compute waits for the copy to the host behind the last reader in
                     forward */
  bool late;      /* of an offloaded one: its copy comes back when it is read, and not before */
} tn_value_choice;

typedef struct tn_rematerialization {
  const tn_forward_backward *fb;
  tn_value_choice *choice; /* per value. The caller's choice */
  bool measured; /* cost_s is the time of the chosen kernels, and not a rough one. The caller's choice */

  /* set by tn_rematerialization_update */
  bool possible;
  bool *remade;           /* per value: backward reads a clone's result or a fetched copy: it is discarded or
                             offloaded, or a clone reads it */
  bool *cloned;           /* per group */
  int32_t *before;        /* per cloned group: the group of backward before which the clone runs */
  int32_t *fetched;       /* per offloaded value: the group of backward before which its copy comes back */
  bool *extended;         /* per value: kept until backward for clones alone */
  int64_t extended_bytes; /* of these values */
  double cost_s, flops;   /* of the clones */

  /* scratch */
  tn_val *stack;
  tn_val *copy;   /* per value: the rematerialized or fetched one */
  tn_val *kept;   /* per offloaded value: the copy on the host */
  tn_val *inner;  /* per value of the group that is being cloned: the clone's */
  int32_t *moved; /* per group: its index in the new cover */
} tn_rematerialization;

tn_status tn_rematerialization_create(const tn_forward_backward *fb, tn_arena *arena,
                                      tn_rematerialization *r);

/* Finds the clones that the discarded values require, and their cost. */
void tn_rematerialization_update(tn_rematerialization *r);

/* Rewrites the cover, which must be in its state at tn_forward_backward_create: inserts the clones, and makes
 * backward read their results. Sets `moved` and `copy`. */
tn_status tn_rematerialization_apply(tn_rematerialization *r);
