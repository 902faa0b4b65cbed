/* core/graph/text/print.h: private to core/graph: single statements as text. */
#ifndef TN_CORE_GRAPH_TEXT_PRINT_H
#define TN_CORE_GRAPH_TEXT_PRINT_H

#include "core/graph/graph.h"

/* Per value, whether it goes by its name; the caller's (tn_release), on failure too. */
tn_status tn_print_names(const tn_graph *g, bool **named);

/* A node's statement. Numbers that name no value are printed as they are; `named` NULL: all are. */
void tn_print_node(const tn_graph *g, const bool *named, const tn_gnode *node, tn_text *text);

#endif
