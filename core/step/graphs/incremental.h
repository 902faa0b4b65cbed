/* core/step/graphs/incremental.h: a causal model as a program that takes a few tokens at a time. */
#pragma once

#include "core/graph/graph.h"

/* The input that says how many tokens are in the caches, an i64 scalar. */
#define TN_POSITION_INPUT "cache.position"

/* Rewrites a forward graph whose only input is (1, window, ...): the result takes (1, tokens, ...), the
 * tokens from number TN_POSITION_INPUT on, and gives the rows of the outputs that belong to them. Keys and
 * values of causal attention are kept in states of the kind TN_STATE_SCRATCH, which have room for the window.
 * The passes before have inserted casts, so that the caches have the dtype of the keys. More
 * tokens than the window are cut to it. *window is set.
 *
 * TN_EUNSUPPORTED, with the layer and its line: an output for a token depends on later tokens, or on earlier
 * ones in another way than by causal attention. Replaces *graph. */
tn_status tn_incremental_graph(int64_t tokens, tn_graph **graph, int64_t *window);
