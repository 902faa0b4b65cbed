/* core/compare/group_graph.h: the ops of one launch as a graph of their own: inputs "in.0" ... are the
 * operands of the launch, outputs "out.0" ... its results. */
#pragma once

#include "core/compile/kernels/group.h"

enum { TN_GROUP_NAME = 16 };
const char *tn_group_graph_in(int32_t i, char name[TN_GROUP_NAME]);
const char *tn_group_graph_out(int32_t i, char name[TN_GROUP_NAME]);

/* The operand that a value of such a graph is; -1: another value. */
int32_t tn_group_graph_operand(const tn_graph *graph, tn_val v);
/* The value of an operand; 0: the graph does not read it. */
tn_val tn_group_graph_find(const tn_graph *graph, int32_t operand);

/* The attributes stay those of `from`. TN_EUNSUPPORTED with a reason: the ops read a value that is no operand
 * of the launch. */
tn_status tn_group_graph_make(const tn_graph *from, const tn_group *group, tn_graph **made);

/* Another graph of the same nodes, without those that no output depends on. */
tn_status tn_group_graph_copy(const tn_graph *from, tn_graph **made);
