/* core/compile/round/cover_round.h: one round of covering a graph with kernels, for the passes `assign` and
 * `select`. */
#pragma once

#include "core/compile/match/region.h"

/* A kernel that was considered for a node and not chosen: an entry of the node's list. */
typedef struct tn_round_rejection {
  const struct tn_round_rejection *next;
  tn_rejection rejection;
  int32_t rank;  /* of the kernel's family */
  bool declined; /* true: the kernel declined. false: another kernel was better */
} tn_round_rejection;

/* The state of a round. Tables are per node unless they say otherwise, and live in the arena. */
typedef struct tn_round {
  tn_env *env;
  tn_catalog *catalog;
  tn_graph *graph;
  tn_arena arena;
  tn_uses uses;
  tn_contracted_graph contracted; /* the graph with every group taken so far as one vertex */
  bool *taken;                    /* the node is in a group, or needs no kernel */
  bool *swept;                    /* the groups of all users recompute the node, so it has no reader left */
  bool *recomputed;               /* per entry of uses.node: the user's group recomputes the value */
  bool *borrowed;                 /* per value: a chosen group reads it for a node that it recomputes */
  bool *inner;                    /* per value: a chosen group makes it and does not store it */
  bool shares;                    /* a chosen candidate recomputes nodes */
  const tn_catalog_kernel **region_kernel; /* the best region kernel that accepts the node by itself */
  tn_candidate *region_single;             /* that kernel's candidate of the node by itself */
  const tn_round_rejection **rejections;
  int32_t *group; /* per vertex of the contracted graph: index into `chosen`; -1: none, or the group was swept
                   */
  TN_VEC(tn_candidate) chosen;
  bool *unmatched; /* true but while the parts of a candidate are searched, for which it replaces `taken` */
  bool *uncovered; /* no kernel accepts the node */
  int32_t n_uncovered;
  const char **fallback; /* nodes that fall back: the device's reasons. NULL: all other nodes */
  const bool *placed; /* nodes of the host (round/placed_nodes.h), which no round covers but the last of pass
                         `select`; NULL where no node is placed on the host */
} tn_round;

/* The round must be new or finished. */
tn_status tn_round_start(tn_round *round, tn_env *env, tn_catalog *catalog, tn_graph *graph);
void tn_round_finish(tn_round *round);

/* Covers all nodes that are not taken, in this order: patterns of several nodes, larger ones first, after
 * which nodes without readers are swept; regions; single nodes, with an epilogue where a kernel computes
 * both. Marks the nodes that no kernel accepts as uncovered. */
tn_status tn_round_cover(tn_round *round, tn_catalog *catalog);

/* Whether a kernel of a catalog accepts a node by itself; records the rejections. */
tn_status tn_round_has_kernel(tn_round *round, tn_catalog *catalog, uint32_t node, bool *found);

/* ---- round_candidates.c ---- */

/* The matcher of the round's state. */
tn_matcher tn_round_matcher(tn_round *round);
/* *best becomes the best kernel with a pattern of `size` nodes, the last of which is `node`, unless it is a
 * better candidate already. */
tn_status tn_round_best_match(tn_round *round, uint32_t node, int32_t size, tn_candidate *best);
/* Finds the best region kernel of a node, unless it is known. */
tn_status tn_round_region_kernel(tn_round *round, uint32_t node);

/* ---- fused_or_parts.c ---- */

/* Whether a candidate of several nodes should be taken: its costs or those of its parts are unknown, or it
 * costs no more than they do. Records the rejection. */
tn_status tn_round_prefers_fused(tn_round *round, const tn_candidate *fused, bool *prefers);

/* ---- sweep.c ---- */

/* Notes the values that a chosen candidate recomputes, and those that it reads for that. */
void tn_round_note_recomputed(tn_round *round, const tn_candidate *candidate);
/* Sweeps the nodes and groups whose results have no reader left: they get no kernel. */
tn_status tn_round_sweep(tn_round *round);

/* ---- choose_group.c ---- */

/* Makes a candidate a group: its nodes are taken and become one vertex of the contracted graph. Groups of the
 * nodes are replaced; the candidate must have all of their nodes. */
tn_status tn_round_choose(tn_round *round, const tn_candidate *candidate);

/* A group of a region kernel, or a node that one takes by itself and that has no group yet. */
typedef struct tn_round_region {
  const tn_catalog_kernel *kernel;
  const uint32_t *node; /* sorted */
  const tn_val *in;     /* its operands, each once */
  int32_t n, n_in;
} tn_round_region;

/* The region of a node; false: the node belongs to no region of the kernels of this round. */
bool tn_round_find_region(const tn_round *round, uint32_t node, tn_round_region *region);

/* ---- merge_siblings.c ---- */

/* Merges small regions that have one iteration space and read the same operand. */
tn_status tn_round_merge_siblings(tn_round *round);

/* ---- join_epilogue.c ---- */

/* Chooses a kernel that computes a node, which `alone` would compute by itself, together with a region that
 * reads its results. *joined is false if no kernel does. */
tn_status tn_round_join_epilogue(tn_round *round, uint32_t node, const tn_candidate *alone, bool *joined);
/* Whether a region that reads results of a node has their dims: an element of the epilogue then needs one
 * element of each result. */
bool tn_round_region_has_space(const tn_round *round, uint32_t node, const tn_round_region *region);

/* ---- extend_pattern.c ---- */

/* Replaces chosen groups of several nodes by ones that also compute the region behind the last node, where a
 * kernel has the group's pattern with an epilogue. */
tn_status tn_round_extend_patterns(tn_round *round);

/* ---- rejections.c ---- */

/* Records a rejection for each of the nodes. A kernel is recorded once per node. */
tn_status tn_round_reject(tn_round *round, const uint32_t *nodes, int32_t n, const tn_catalog_kernel *kernel,
                          const char *reason, bool declined);
/* Records that a candidate lost against a better one. */
tn_status tn_round_reject_worse(tn_round *round, const tn_candidate *worse, const tn_candidate *better);
/* The reasons of all kernels for a node: "cpu.conv2d: ...; cpu.gemm: ...". In the round's arena. */
tn_status tn_round_reasons(tn_round *round, uint32_t node, const char **reasons);
/* Fails with TN_EUNSUPPORTED: no kernel accepts the node, for these reasons; `more` is appended. */
tn_status tn_round_fail_unsupported(tn_round *round, uint32_t node, const char *reasons, const char *more);
