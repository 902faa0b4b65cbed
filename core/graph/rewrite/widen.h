/* core/graph/rewrite/widen.h: ops whose schema says that they are computed in wider dtypes. */
#pragma once

#include "core/graph/build/builder.h"

/* Whether a node of these operands is one. It is composite: no kernel gets it. */
bool tn_node_widens(const tn_graph *g, const tn_op_def *def, const tn_val *in, int32_t n_in);

/* Emits and yields the results by casts and the op in the wider dtypes. */
tn_status tn_widen(tn_build *b, const tn_op_def *def, const void *attributes, const tn_val *in, int32_t n_in);
