/* core/formats/safetensors_index.h: the JSON beside weights in several files (shards), which says which file
 * has which tensor: {"weight_map": {"h.0.attn.weight": "model-00001-of-00002.safetensors", ...}}, as Hugging
 * Face's transformers writes it. Private to the reader of safetensors. */
#pragma once

#include "core/base/arena.h"

typedef struct tn_sharded_tensor {
  const char *name, *file; /* the file is in the folder of the index */
} tn_sharded_tensor;

typedef struct tn_safetensors_index {
  tn_sharded_tensor *v; /* sorted by name */
  int32_t n;
} tn_safetensors_index;

/* Whether the path is that of an index. */
bool tn_safetensors_is_index(const char *path);
/* Reads an index into the arena. TN_EINVAL: it is damaged, or names files of other folders. */
tn_status tn_safetensors_index_read(const void *handle, tn_arena *arena, const char *path,
                                    tn_safetensors_index *index);
