/* core/graph/name_index.c: names by their hashes. */
#include "core/graph/name_index.h"

#include "core/base/text/text.h"

tn_name_index tn_name_index_new(const void *handle) {
  return (tn_name_index){.by_hash = tn_hash_index_new(handle)};
}

tn_status tn_name_index_add(tn_name_index *index, const char *name) {
  const void *handle = index->by_hash.handle;
  TN_TRY(tn_vec_reserve(handle, &index->names, index->names.n + 1));
  TN_TRY(tn_hash_index_add(&index->by_hash, tn_hash_text(TN_HASH_START, name), (uint32_t)index->names.n));
  index->names.v[index->names.n++] = name;
  return TN_OK;
}

int64_t tn_name_index_find(const tn_name_index *index, const char *name) {
  size_t probe = 0;
  uint64_t hash = tn_hash_text(TN_HASH_START, name);
  for (int64_t i; (i = tn_hash_index_next(&index->by_hash, hash, &probe)) != TN_HASH_INDEX_NONE;)
    if (tn_text_equal(index->names.v[i], name)) return i;
  return TN_NAME_INDEX_NONE;
}

void tn_name_index_free(tn_name_index *index) {
  const void *handle = index->by_hash.handle;
  tn_hash_index_free(&index->by_hash);
  tn_vec_free(handle, &index->names);
}
