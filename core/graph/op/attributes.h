/* core/graph/op/attributes.h: attribute structs of nodes: copies for another graph, and hashes. */
#ifndef TN_CORE_GRAPH_OP_ATTRIBUTES_H
#define TN_CORE_GRAPH_OP_ATTRIBUTES_H

#include "core/base/arena.h"
#include "tenon/plugin/plugin.h"

/* A copy that shares nothing with the original; NULL when memory ran out. */
void *tn_attributes_copy(tn_arena *arena, const tn_item *item, const void *attributes);

/* Equal for attributes that tn_options_equal finds equal. */
uint64_t tn_attributes_hash(uint64_t hash, const tn_item *item, const void *attributes);

#endif
