/* plugins/sources/shards/shard_field.h: the fields of samples in shards: which members they are read from,
 * and how. */
#pragma once

#include "plugins/sources/sources.h"
#include "tenon/tokenizer.h"

enum { SHARD_FIELDS = 16, SHARD_NAME = 48, SHARD_ENDINGS = 160 };
enum { SHARD_IMAGE = 0, SHARD_CLASS, SHARD_NUMBERS, SHARD_TEXT, SHARD_TOKENS, SHARD_ARRAY };

/* "image: jpg|png", "label: cls", "size: json(image.size)", "kind: class(json(kind))", "text: tokens(txt)" */
typedef struct shard_field {
  char name[SHARD_NAME], endings[SHARD_ENDINGS]; /* endings: "jpg|png" */
  char key[SHARD_ENDINGS];                       /* of json(key); "": the whole member is the value */
  int32_t role, kind, is_list; /* is_list: the first dimension differs from sample to sample */
  int64_t classes;             /* of a class number; 0: none, or not known yet */
  tn_type type;
} shard_field;

typedef struct shard_fields {
  int32_t n;
  shard_field v[SHARD_FIELDS];
  int64_t most_pixels, at_least;
  int32_t ignores_orientation;
  tn_tokenizer *tokenizer; /* of SHARD_TOKENS */
  int64_t length, pad;     /* of texts and tokens; length 0: they differ */
} shard_fields;

/* The first field of classes; -1: none. */
int32_t shard_fields_first_class(const shard_fields *fields);

/* A member of a sample. `bytes` has a NUL behind it. */
typedef struct shard_bytes {
  const char *where; /* for messages */
  char *bytes;
  size_t n;
} shard_bytes;

/* Adds the fields of a list, separated by commas or lines. Messages name `option`. */
tn_status shard_fields_add(const void *handle, const char *option, const char *text, int32_t role,
                           shard_fields *fields);
/* Whether the field is read from members with this ending, such as "jpg" or "seg.png". */
int32_t shard_field_takes(const shard_field *f, const char *ending);

/* The class number in a member; TN_EINVAL for other content, or a number that is too large. */
tn_status shard_field_class(const void *handle, const shard_field *f, const shard_bytes *member,
                            int64_t *number);
/* The same without a message: 0 where it is no class number. */
int32_t shard_field_peek_class(const shard_field *f, const shard_bytes *member, int64_t *number);
/* Whether the type of the field is found from samples. */
int32_t shard_field_is_measured(const shard_field *f);
/* The type of the value in a member. */
tn_status shard_field_measure(const void *handle, const shard_fields *fields, int32_t i,
                              const shard_bytes *member, tn_type *type);
/* Writes field i of the sample. */
tn_status shard_field_read(tn_sample *s, const shard_fields *fields, int32_t i, const shard_bytes *member);
