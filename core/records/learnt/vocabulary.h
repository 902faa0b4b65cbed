/* core/records/learnt/vocabulary.h: the tokenizer of a language model: that of its training data, which
 * the weights keep, or the names of its classes. */
#pragma once

#include <jansson.h>

#include "core/base/vec.h"
#include "tenon/tokenizer.h"

/* The tokenizer in the note of the weights about their data (records/checkpoints/learnt.h; NULL: there is
 * none). *tokenizer is NULL: the note has none, or *unfit, the number of its tokens, is more than n. */
tn_status tn_vocabulary_of_note(const void *handle, const char *learnt, int64_t n, tn_tokenizer **tokenizer,
                                int64_t *unfit);
/* The tokens around a generated text, where the note names them, else -1: *begin is in front of a prompt, and
 * the text ends in front of *end. */
void tn_vocabulary_ends(const char *learnt, int32_t *begin, int32_t *end);
/* `names` is a list with the text of each of n tokens. NULL: 256 tokens are bytes, and others have no texts:
 * *tokenizer is NULL. */
tn_status tn_vocabulary_of_names(const void *handle, const json_t *names, int64_t n,
                                 tn_tokenizer **tokenizer);

/* A list with the text of each of n tokens for people: null where the tokenizer has none. NULL: out of
 * memory.
 */
json_t *tn_vocabulary_names(const void *handle, const tn_tokenizer *tokenizer, int64_t n);
