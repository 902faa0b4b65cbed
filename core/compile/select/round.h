/* core/compile/select/round.h: one round of covering a graph, inside the passes `assign` and `select`. */
#ifndef TN_CORE_COMPILE_SELECT_ROUND_H
#define TN_CORE_COMPILE_SELECT_ROUND_H

#include "core/compile/select/match.h"

/* A kernel that was asked about a node, and did not get it. */
typedef struct tn_note {
  const struct tn_note *next;
  tn_rejection rejection;
  int32_t rank;  /* of the kernel's family */
  bool declined; /* by the kernel itself; false: another one was better */
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
  const char **fallback; /* why the device does not do a node that the fallback does; NULL: other nodes */
} tn_selection;

tn_status tn_selection_start(tn_selection *s, tn_env *env, tn_catalog *catalog, tn_graph *graph);
void tn_selection_finish(tn_selection *s);

/* Records a rejection for every node of a candidate. */
tn_status tn_selection_note(tn_selection *s, const uint32_t *nodes, int32_t n,
                            const tn_catalog_kernel *kernel, const char *reason, bool declined);
/* Makes a candidate a group. */
tn_status tn_selection_take(tn_selection *s, const tn_candidate *candidate);
/* Of two candidates for the same nodes: the one chosen before, then the better family's, then the cheaper. */
bool tn_candidate_better(const tn_candidate *a, const tn_candidate *b);

/* The three ways to cover, in the order of their application. */
tn_status tn_select_patterns(tn_selection *s);
tn_status tn_select_regions(tn_selection *s);
tn_status tn_select_singles(tn_selection *s);

/* Whether a kernel of a catalog takes a node alone; notes those that do not. */
tn_status tn_selection_can(tn_selection *s, tn_catalog *catalog, uint32_t node, bool *can);

/* Rounds over *graph until every composite is covered or decomposed; *graph is replaced on the way. Nodes
 * that nobody takes and that cannot be decomposed are left lacking. *s is the caller's to finish, also
 * after a failure; it must be finished or new. */
tn_status tn_select_rounds(tn_selection *s, tn_env *env, tn_catalog *catalog, tn_graph **graph);

/* What every kernel had to say about a node: "cpu.conv2d: ...; cpu.gemm: ...". In the round's arena. */
tn_status tn_selection_reasons(tn_selection *s, uint32_t node, const char **reasons);
/* TN_EUNSUPPORTED: nobody does the node, for these reasons; `more` is put at the end. */
tn_status tn_selection_unsupported(tn_selection *s, uint32_t node, const char *reasons, const char *more);

/* Passes `assign` and `select` without taking the graph. */
tn_status tn_select_cover(tn_env *env, tn_registry *registry, const tn_target *target, const tn_graph *graph,
                          tn_cover **cover);

#endif
