/* core/infer/prediction/vocabulary.h: text as tokens of a model, and back. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "core/base/vec.h"

typedef TN_VEC(int32_t) tn_token_list;

typedef struct tn_vocabulary {
  int64_t n;
  const char **texts; /* of the names, which outlive the vocabulary, or of `bytes` */
  size_t *lengths, longest;
  int32_t *sorted; /* tokens in the order of their texts */
  char *bytes;     /* the texts of 256 tokens that are bytes; NULL: the names are given */
} tn_vocabulary;

/* `names` is a list with the text of each of n tokens. NULL: unknown; 256 tokens are then bytes, and others
 * have no texts: `n` is 0. */
tn_status tn_vocabulary_open(const void *handle, const json_t *names, int64_t n, tn_vocabulary *v);
void tn_vocabulary_close(const void *handle, tn_vocabulary *v);

/* Appends the tokens of a text: at each place the longest token that fits. TN_EINVAL: no token does. */
tn_status tn_vocabulary_encode(const void *handle, const tn_vocabulary *v, const char *text, size_t bytes,
                               tn_token_list *tokens);
/* The text of a token, 0 <= token < n; valid as long as the vocabulary. */
const char *tn_vocabulary_text(const tn_vocabulary *v, int32_t token, size_t *bytes);
