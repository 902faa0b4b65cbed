/* core/compile/select/assign.h: pass `assign`: which side does each op, the device or its fallback. */
#ifndef TN_CORE_COMPILE_SELECT_ASSIGN_H
#define TN_CORE_COMPILE_SELECT_ASSIGN_H

#include "core/compile/select/round.h"

/* A graph in its final form: composites that no kernel took are decomposed, and each node that needs a
 * kernel has a side. */
typedef struct tn_assignment {
  tn_env *env;
  tn_catalog *catalog;  /* owned: what runs on the device */
  tn_catalog *fallback; /* owned: what runs where ops of the device fall back to; NULL: nowhere */
  tn_graph *graph;      /* owned */
  tn_selection round;   /* the round of select that stands: what the device does is covered */
} tn_assignment;

/* Reads the graph and makes another. An op that neither side can do, or that falls back where the target
 * refuses that: TN_EUNSUPPORTED with every kernel's reason. */
tn_status tn_pass_assign(tn_env *env, tn_registry *registry, const tn_target *target, const tn_graph *graph,
                         tn_assignment *assignment);
void tn_assignment_free(tn_assignment *assignment);

/* Graph text with, after each node that falls back, a comment line that says where to and why. */
tn_status tn_assignment_print(const tn_assignment *assignment, tn_text *text);

/* Pass `select` for what was assigned: covers what falls back, too. Takes what the assignment owns on
 * success. */
tn_status tn_select_assigned(tn_assignment *assignment, tn_cover **cover);

#endif
