/* core/compile/select.h: one round of covering a graph, inside the pass `select`. */
#ifndef TN_CORE_COMPILE_SELECT_H
#define TN_CORE_COMPILE_SELECT_H

#include "core/compile/match.h"

/* A kernel that was asked about a node, and did not get it. */
typedef struct tn_note {
  const struct tn_note *next;
  tn_rejection rejection;
} tn_note;

/* The state of a round. Tables are per node, and lie in the arena. */
typedef struct tn_selection {
  tn_env *env;
  tn_catalog *catalog;
  tn_graph *graph;
  tn_arena arena;
  tn_uses uses;
  tn_units units;
  bool *taken;                             /* in a group, or in need of none */
  const tn_catalog_kernel **region_kernel; /* the best that takes the node alone */
  tn_candidate *alone;                     /* that kernel's answer for the node alone */
  const tn_note **notes;
  int32_t *group; /* per unit: index into chosen, -1 */
  TN_VEC(tn_candidate) chosen;
  bool *lacking; /* no kernel takes the node */
  int32_t n_lacking;
} tn_selection;

tn_status tn_selection_start(tn_selection *s, tn_env *env, tn_catalog *catalog, tn_graph *graph);
void tn_selection_finish(tn_selection *s);

/* Records a rejection for every node of a candidate. */
tn_status tn_selection_note(tn_selection *s, const uint32_t *nodes, int32_t n,
                            const tn_catalog_kernel *kernel, const char *reason);
/* Makes a candidate a group. */
tn_status tn_selection_take(tn_selection *s, const tn_candidate *candidate);
/* Of two candidates for the same nodes: the better family's, then the cheaper one. */
bool tn_candidate_better(const tn_candidate *a, const tn_candidate *b);

/* The three ways to cover, in the order of their application. */
tn_status tn_select_patterns(tn_selection *s);
tn_status tn_select_regions(tn_selection *s);
tn_status tn_select_singles(tn_selection *s);

/* TN_EUNSUPPORTED with what every kernel had to say about a node that nobody does. */
tn_status tn_selection_unsupported(tn_selection *s, uint32_t node);

/* The pass without taking the graph. */
tn_status tn_select_cover(tn_env *env, tn_registry *registry, const tn_target *target, const tn_graph *graph,
                          tn_cover **cover);

#endif
