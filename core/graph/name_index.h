/* core/graph/name_index.h: finds names, such as the paths of states, among many. The names are numbered in
 * the order in which they are added, so that an index stands beside an array with an item for each name. */
#pragma once

#include "core/base/vec.h"
#include "core/graph/hash_index.h"

enum { TN_NAME_INDEX_NONE = -1 };

typedef struct tn_name_index {
  tn_hash_index by_hash; /* into names */
  TN_VEC(const char *) names;
} tn_name_index;

tn_name_index tn_name_index_new(const void *handle);
/* Adds a name that is not in the index; it is borrowed. */
tn_status tn_name_index_add(tn_name_index *index, const char *name);
/* The number of the name, or TN_NAME_INDEX_NONE. */
int64_t tn_name_index_find(const tn_name_index *index, const char *name);
/* Frees the memory; the index is empty then, as a new one. */
void tn_name_index_free(tn_name_index *index);
