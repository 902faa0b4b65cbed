#include "core/formats/safetensors_index.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"

enum { LONGEST_INDEX = 100000000 };

bool tn_safetensors_is_index(const char *path) { return tn_text_ends(path, ".safetensors.index.json"); }

/* A shard is beside its index. */
static tn_status index_check_file(const void *handle, const char *path, const char *tensor,
                                  const char *file) {
  if (file != NULL && *file != '\0' && strchr(file, '/') == NULL) return TN_OK;
  return tn_failf(
      handle, TN_EINVAL,
      "%s: the file of tensor \"%.100s\" is '%.100s', expected the name of a file in the same folder", path,
      tensor, file != NULL ? file : "no text");
}

static int index_compare(const void *a, const void *b) {
  return strcmp(((const tn_sharded_tensor *)a)->name, ((const tn_sharded_tensor *)b)->name);
}

static tn_status index_list(const void *handle, tn_arena *arena, const char *path, json_t *map,
                            tn_safetensors_index *index) {
  const char *name;
  json_t *file;
  index->v = tn_arena_alloc(arena, tn_size_mul(json_object_size(map) + 1, sizeof *index->v));
  if (index->v == NULL) return TN_ENOMEM;
  json_object_foreach(map, name, file) {
    TN_TRY(index_check_file(handle, path, name, json_string_value(file)));
    tn_sharded_tensor one = {tn_arena_strdup(arena, name), tn_arena_strdup(arena, json_string_value(file))};
    if (one.name == NULL || one.file == NULL) return TN_ENOMEM;
    index->v[index->n++] = one;
  }
  qsort(index->v, (size_t)index->n, sizeof *index->v, index_compare);
  return TN_OK;
}

tn_status tn_safetensors_index_read(const void *handle, tn_arena *arena, const char *path,
                                    tn_safetensors_index *index) {
  char *text = NULL;
  size_t n = 0;
  *index = (tn_safetensors_index){NULL, 0};
  TN_TRY(tn_file_read(handle, path, LONGEST_INDEX, &text, &n));
  json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL),
         *map = json_object_get(json, "weight_map");
  tn_release(handle, text);
  tn_status status =
      json_is_object(map)
          ? index_list(handle, arena, path, map, index)
          : tn_failf(
                handle, TN_EINVAL,
                "%s: no index of shards: expected a JSON object with \"weight_map\", the file of each tensor",
                path);
  json_decref(json);
  return status;
}
