/* core/graph/op/attributes.h: copies and hashes of the attribute structs of nodes. */
#pragma once

#include "core/base/arena.h"
#include "tenon/plugin/plugin.h"

/* A deep copy; NULL if memory ran out. */
void *tn_attributes_copy(tn_arena *arena, const tn_item *item, const void *attributes);

/* Attributes that are equal (tn_options_equal) have equal hashes. */
uint64_t tn_attributes_hash(uint64_t hash, const tn_item *item, const void *attributes);
