/* plugins/sources/shards/shard_json.h: numbers, classes and texts in members of JSON. */
#pragma once

#include <jansson.h>

#include "plugins/sources/shards/shard_field.h"

/* Parses a member; the caller gives the document back (json_decref). */
tn_status shard_json_open(const void *handle, const shard_bytes *m, json_t **root);
/* The value that the field's key names, such as "a.b"; NULL where the sample lacks it. */
const json_t *shard_json_find(const shard_field *f, const json_t *root);
tn_status shard_json_fail(const void *handle, const shard_field *f, const shard_bytes *m,
                          const char *expected);

/* The type f32[...] of a number, or of lists of numbers in each other, which have equal lengths. */
tn_status shard_json_type(const void *handle, const shard_field *f, const shard_bytes *m, const json_t *root,
                          tn_type *type);
/* Writes numbers of this type. */
tn_status shard_json_numbers(const void *handle, const shard_field *f, const shard_bytes *m,
                             const json_t *root, const tn_type *type, float *to);
/* Whether the value is a whole number. */
int32_t shard_json_class(const shard_field *f, const json_t *root, int64_t *number);
