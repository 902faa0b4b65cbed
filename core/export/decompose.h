/* core/export/decompose.h: a graph whose ops a target has. */
#pragma once

#include "core/graph/graph.h"

/* A target: an item of it expresses some ops, and some uses of others. */
typedef struct tn_export_target {
  /* Whether the target has the op of a node; reads: by value, how many operands and outputs read it. */
  bool (*has)(void *context, const tn_graph *graph, const int32_t *reads, const tn_gnode *node);
  void *context;
} tn_export_target;

/* Replaces *graph by one in which every composite op that the target lacks is decomposed. */
tn_status tn_export_decompose(tn_graph **graph, const tn_export_target *target);
/* By value: how many operands of live nodes and outputs read it; in the arena, NULL: out of memory. */
int32_t *tn_export_reads(tn_arena *arena, const tn_graph *graph);
