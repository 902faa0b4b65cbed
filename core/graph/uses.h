/* core/graph/uses.h: the users of each value of a graph, and kinds of nodes. */
#pragma once

#include "core/graph/graph.h"

typedef struct tn_uses {
  const int32_t *start;   /* per value, and one more: the first of its users in `node` */
  const uint32_t *node;   /* users in graph order; a node that uses a value twice appears twice */
  const int32_t *outside; /* per value: commits, predicates and outputs that use it */
} tn_uses;

tn_status tn_uses_create(tn_arena *arena, const tn_graph *graph, tn_uses *uses);

/* Whether a node needs a kernel, or only a location for its result. */
typedef enum tn_node_kind {
  TN_NODE_WORK,
  TN_NODE_INPUT, /* in the input slot */
  TN_NODE_STATE, /* in the region of the state */
  TN_NODE_VIEW,  /* at the location of its operand */
  TN_NODE_PACK   /* contains its operands */
} tn_node_kind;
tn_node_kind tn_node_kind_of(const tn_gnode *node);
