/* core/train/graphs/low_precision_copies.h: low-precision copies of parameters. Each is a state of its own,
 * "PARAM:bf16", that lies in a region "REGION:bf16" where the parameter lies in REGION. So all copies are
 * made by one cast of a region: after every update by the program that commits it, and by the refresh program
 * after the parameters were initialized or loaded. They are never saved. */
#ifndef TN_CORE_TRAIN_GRAPHS_LOW_PRECISION_COPIES_H
#define TN_CORE_TRAIN_GRAPHS_LOW_PRECISION_COPIES_H

#include "core/compile/state_map.h"

/* The copy of a parameter (the result of a `state` node of `from`) in another type, as a value of `to`.
 * 0: out of memory. */
tn_val tn_derived_read(tn_graph *to, const tn_graph *from, tn_val param, int32_t dtype);

/* Gives the copies that a graph reads their places beside their parameters, which have theirs. */
tn_status tn_derived_place(tn_state_map *map, const tn_graph *graph);

/* Adds to a graph the commits of what is derived from the parameters that it commits. Every graph's copies
 * have been placed. */
tn_status tn_derived_commit(const tn_state_map *map, tn_graph *graph);

/* The graph of the refresh program; NULL where nothing is derived. */
tn_status tn_refresh_graph(tn_env *env, struct tn_op_table *ops, tn_state_map *map, tn_graph **graph);

#endif
