/* core/graph/input_state.h: the ops `input` and `state`. They have no kernels. Their type is an attribute
 * without an option: the text form has it in front of the statement. */
#pragma once

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

static inline bool tn_op_is_input_or_state(const tn_op *op) {
  return op == &tn_op_input || op == &tn_op_state;
}

/* The member of the attributes of `input` or `state` that holds the type. */
tn_type *tn_input_state_type(const tn_op *op, void *attributes);
