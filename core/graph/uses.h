/* core/graph/uses.h: who uses which value of a graph, as arrays that do not grow. */
#ifndef TN_CORE_GRAPH_USES_H
#define TN_CORE_GRAPH_USES_H

#include "core/graph/graph.h"

typedef struct tn_uses {
  const int32_t *start;   /* per value, and one more: where its users begin in `node` */
  const uint32_t *node;   /* users in graph order; a node that uses a value twice stands here twice */
  const int32_t *outside; /* per value: commits, predicates and outputs that use it */
} tn_uses;

tn_status tn_uses_create(tn_arena *arena, const tn_graph *graph, tn_uses *uses);

/* What a node needs: a kernel, or only a place for its result. */
typedef enum tn_node_kind {
  TN_NODE_WORK,
  TN_NODE_INPUT, /* lies in the input slot */
  TN_NODE_STATE, /* lies in its region */
  TN_NODE_VIEW,  /* lies where its operand lies */
  TN_NODE_PACK   /* its operands lie in it */
} tn_node_kind;
tn_node_kind tn_node_kind_of(const tn_gnode *node);

#endif
