/* plugins/sources/shards/shard_json.c: see shard_json.h. */
#include "plugins/sources/shards/shard_json.h"

#include <string.h>

static const char JSON_NUMBERS[] = "a number or lists of numbers of equal lengths";

tn_status shard_json_open(const void *handle, const shard_bytes *m, json_t **root) {
  json_error_t error;
  *root = json_loadb(m->bytes, m->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
  if (*root != NULL) return TN_OK;
  return tn_fail(handle, TN_EINVAL, NULL, "%s: damaged JSON at byte %d: %s", m->where, error.position,
                 error.text);
}

const json_t *shard_json_find(const shard_field *f, const json_t *root) {
  char word[SHARD_ENDINGS];
  for (const char *key = f->key; *key != '\0' && root != NULL;) {
    size_t n = strcspn(key, ".");
    memcpy(word, key, n);
    word[n] = '\0';
    root = json_object_get(root, word);
    key += n + (key[n] == '.');
  }
  return root;
}

tn_status shard_json_fail(const void *handle, const shard_field *f, const shard_bytes *m,
                          const char *expected) {
  return tn_fail(handle, TN_EINVAL, NULL, "%s: has no '%s', expected %s there", m->where,
                 f->key[0] != '\0' ? f->key : "value", expected);
}

tn_status shard_json_type(const void *handle, const shard_field *f, const shard_bytes *m, const json_t *root,
                          tn_type *type) {
  *type = (tn_type){TN_F32, 0, {0}};
  const json_t *value = shard_json_find(f, root);
  for (; json_is_array(value); value = json_array_get(value, 0)) {
    if (type->rank == TN_MAX_RANK || json_array_size(value) == 0)
      return shard_json_fail(handle, f, m, JSON_NUMBERS);
    type->dims[type->rank++] = (int64_t)json_array_size(value);
  }
  return value != NULL ? TN_OK : shard_json_fail(handle, f, m, JSON_NUMBERS);
}

/* The numbers of dimension `d` on; *to goes on behind them. 0: one is missing, or another value. */
static int32_t json_take_numbers(const json_t *value, const tn_type *type, int32_t d, float **to) {
  if (d == type->rank) {
    *(*to)++ = json_is_true(value) ? 1 : (float)json_number_value(value);
    return json_is_number(value) || json_is_boolean(value);
  }
  if (!json_is_array(value) || (int64_t)json_array_size(value) != type->dims[d]) return 0;
  for (size_t i = 0; i < json_array_size(value); i++)
    if (!json_take_numbers(json_array_get(value, i), type, d + 1, to)) return 0;
  return 1;
}

tn_status shard_json_numbers(const void *handle, const shard_field *f, const shard_bytes *m,
                             const json_t *root, const tn_type *type, float *to) {
  return json_take_numbers(shard_json_find(f, root), type, 0, &to)
             ? TN_OK
             : shard_json_fail(handle, f, m, JSON_NUMBERS);
}

int32_t shard_json_class(const shard_field *f, const json_t *root, int64_t *number) {
  const json_t *value = shard_json_find(f, root);
  *number = json_integer_value(value);
  return json_is_integer(value);
}
