/* core/graph/text/print.h: private to core/graph: single statements as text. */
#pragma once

#include "core/graph/graph.h"

/* A node's statement. Values outside of the graph print by number; `named` NULL: all values do. */
void tn_print_node(const tn_graph *g, const bool *named, const tn_gnode *node, tn_text *text);
