/* core/infer/prediction/vocabulary.h: the tokenizer of a language model: that of its training data, which the
 * weights keep, or the names of its classes. */
#pragma once

#include <jansson.h>

#include "core/base/vec.h"
#include "tenon/tokenizer.h"

/* `learnt` is the note of the weights about their data (records/checkpoints/learnt.h), or NULL; `names` is a
 * list with the text of each of n tokens, or NULL. Without both, 256 tokens are bytes. *tokenizer is NULL:
 * the tokens have no texts. *unfit: the tokens of a tokenizer for more than n, which is not used; 0: none. */
tn_status tn_vocabulary_open(const void *handle, const char *learnt, const json_t *names, int64_t n,
                             tn_tokenizer **tokenizer, int64_t *unfit);

/* A list with the text of each of n tokens for people: null where the tokenizer has none. NULL: out of
 * memory.
 */
json_t *tn_vocabulary_names(const void *handle, const tn_tokenizer *tokenizer, int64_t n);
