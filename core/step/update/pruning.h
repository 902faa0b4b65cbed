/* core/step/update/pruning.h: [prune]: magnitude pruning (Han et al., NeurIPS 2015), with the gradual
 * sparsity of Zhu and Gupta ("To prune, or not to prune", 2017).
 *
 * Each pruned parameter has the state "NAME.pruned", 1 where the weight is zero and stays so. The program
 * PRUNE chooses these weights anew; the update clears their gradients and new values. */
#pragma once

#include "core/step/graphs/training_graph.h"

/* What PRUNE aims at, which the host writes in front of it, and the share of zeros that it has made: f32. */
#define TN_PRUNE_GOAL "run.sparsity.goal"
#define TN_PRUNE_MADE "run.sparsity"

/* The graph of PRUNE; NULL: nothing is pruned. It may add states to the map. */
tn_status tn_prune_graph(tn_env *env, struct tn_op_table *ops, const tn_settings *settings,
                         const tn_state_map *map, tn_graph **graph);
