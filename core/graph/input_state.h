/* core/graph/input_state.h: `input` and `state`, the two ops that the graph itself defines. They have no
 * kernels; their type is no option but stands in front of the statement. */
#ifndef TN_CORE_GRAPH_INPUT_STATE_H
#define TN_CORE_GRAPH_INPUT_STATE_H

#include "core/graph/graph.h"

typedef struct tn_input_attributes {
  const char *name;
  tn_type type;
} tn_input_attributes;

typedef struct tn_state_attributes {
  const char *path;
  int32_t what; /* TN_STATE_... - 1 */
  const char *init;
  tn_type type;
} tn_state_attributes;

extern const tn_op tn_op_input, tn_op_state;

static inline bool tn_op_is_special(const tn_op *op) { return op == &tn_op_input || op == &tn_op_state; }

/* Where the attributes of a special op hold its type. */
tn_type *tn_special_type(const tn_op *op, void *attributes);

/* Notes a new `input` or `state` node's result v in the graph's lists. TN_EINVAL if its name or path
 * is there already. */
tn_status tn_special_register(tn_graph *g, const tn_op *op, const void *attributes, const char *where,
                              tn_val v);

#endif
