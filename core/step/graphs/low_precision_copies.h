/* core/step/graphs/low_precision_copies.h: low-precision copies of parameters. A copy is a state
 * "PARAM:bf16" in the region "REGION:bf16", at the offset that the parameter has in REGION. So one cast of a
 * region makes all copies: in the program that commits the update, and in the refresh program after
 * parameters were initialized or loaded. Checkpoints hold no copies.
 *
 * Of a region that is divided among ranks every rank has the copies of all elements, gathered after the cast.
 * Of a region in memory of the host the copies are those on the device. Programs read such regions by their
 * copies alone, which may also be f32: "PARAM:f32". */
#pragma once

#include "core/compile/state_map.h"

/* The path of a copy, "PATH:bf16", and the path of the state that a copy is of; NULL: out of memory. */
const char *tn_low_precision_path(tn_arena *arena, const char *path, int32_t dtype);
const char *tn_low_precision_source(tn_arena *arena, const char *path);

/* The copy of a parameter in another dtype, as a value of `to`. `param` is the result of a `state` node of
 * `from`. 0: out of memory. */
tn_val tn_low_precision_read(tn_graph *to, const tn_graph *from, tn_val param, int32_t dtype);

/* Replaces *graph by one that reads copies in place of states in divided regions and in those of the host. */
tn_status tn_read_gathered(const tn_state_map *map, tn_graph **graph);

/* Gives the copies that a graph reads their locations. The locations of the parameters must be known. */
tn_status tn_low_precision_allocate(tn_state_map *map, const tn_graph *graph);

/* Adds the commits of copies to a graph that commits parameters. The copies of all graphs must have
 * locations. Copies of averages that are divided or on the host, which only evaluation reads, are left to the
 * refresh program. */
tn_status tn_low_precision_commit(const tn_state_map *map, tn_graph *graph);

/* The graph of the refresh program; NULL if there are no copies. */
tn_status tn_refresh_graph(tn_env *env, struct tn_op_table *ops, tn_state_map *map, tn_graph **graph);
