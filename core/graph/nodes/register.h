/* core/graph/nodes/register.h: private to core/graph: the lists of inputs and states of a graph. */
#pragma once

#include "core/graph/input_state.h"

/* The value of the input of this name; 0: the graph has no such input. */
tn_val tn_graph_find_input(const tn_graph *g, const char *name);

/* TN_EINVAL if an existing input or state is requested with another type. `kind` is "input" or "state". */
tn_status tn_graph_check_same_type(const tn_graph *g, const char *kind, const char *name, const tn_type *type,
                                   const tn_type *requested);

/* Adds result v of a new `input` or `state` node to the graph's lists; other ops are ignored. TN_EINVAL if
 * its name or path is in use. */
tn_status tn_input_state_register(tn_graph *g, const tn_op *op, const void *attributes, const char *where,
                                  tn_val v);
