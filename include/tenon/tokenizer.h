/* tenon/tokenizer.h: text as the ids of a vocabulary, and back: Hugging Face's tokenizer.json, bytes, and
 * characters. Threads: any number use one tokenizer at once, each with its own handle. */
#ifndef TENON_TOKENIZER_H
#define TENON_TOKENIZER_H

#include "tenon/api.h"

TN_BEGIN_C

/* Ids that a call appends to; zero at first. The caller deletes `v` (tn_delete). */
typedef struct tn_token_ids {
  int32_t *v;
  size_t n, room;
} tn_token_ids;

typedef struct tn_token_text {
  const char *text;
  size_t bytes;
} tn_token_text;

enum {
  TN_TOKENIZE_TEMPLATE = 1, /* encode: with the ids that the tokenizer puts around a text, such as <s> */
  TN_TOKENIZE_SPECIAL = 2   /* decode: special tokens are written; without it they are left out */
};

/* Opens "bytes", where a token is a byte, or a file tokenizer.json. TN_EUNSUPPORTED: the file has a part that
 * Tenon lacks, which the message names with its place in the JSON. TN_EUNAVAILABLE: the build lacks a library
 * that the file needs. */
static inline tn_status tn_tokenizer_open(const void *handle, const char *path, tn_tokenizer **tokenizer) {
  return ((const tn_env *)handle)->api->tokenizer_open(handle, path, tokenizer);
}

/* Opens the text of such a file; `name` is for messages. */
static inline tn_status tn_tokenizer_open_text(const void *handle, const char *name, const char *json,
                                               size_t bytes, tn_tokenizer **tokenizer) {
  return ((const tn_env *)handle)->api->tokenizer_open_text(handle, name, json, bytes, tokenizer);
}

/* A tokenizer whose tokens are the different characters of a text in UTF-8, in the order of their code
 * points. `name` is that of the text, for messages. TN_EINVAL: the text has another encoding, or more than
 * `most` characters. */
static inline tn_status tn_tokenizer_of_characters(const void *handle, const char *name, const char *text,
                                                   size_t bytes, int32_t most, tn_tokenizer **tokenizer) {
  return ((const tn_env *)handle)->api->tokenizer_of_characters(handle, name, text, bytes, most, tokenizer);
}

/* Accepts NULL. */
static inline void tn_tokenizer_close(const void *handle, tn_tokenizer *tokenizer) {
  ((const tn_env *)handle)->api->tokenizer_close(handle, tokenizer);
}

/* JSON from which tn_tokenizer_open_text opens the same tokenizer; NUL-terminated, valid until it is closed.
 */
static inline const char *tn_tokenizer_json(const void *handle, const tn_tokenizer *tokenizer) {
  return ((const tn_env *)handle)->api->tokenizer_json(tokenizer);
}

/* Appends the ids of a text in UTF-8. TN_EINVAL: the text has another encoding, or a character for which the
 * tokenizer has no id. Truncation and padding, which tokenizer.json may ask for, are not applied. */
static inline tn_status tn_tokenizer_encode(const void *handle, const tn_tokenizer *tokenizer,
                                            const char *text, size_t bytes, uint32_t flags,
                                            tn_token_ids *ids) {
  return ((const tn_env *)handle)->api->tokenizer_encode(handle, tokenizer, text, bytes, flags, ids);
}

/* Appends the ids of n texts, each for itself, in their order; ends[i] becomes the number of ids up to the
 * end of text i. `threads` work on them; 0: as many as the process has processors. The ids do not depend on
 * it. A failure is that of the first text which fails, and names its number. */
static inline tn_status tn_tokenizer_encode_all(const void *handle, const tn_tokenizer *tokenizer,
                                                const tn_token_text *texts, size_t n, uint32_t flags,
                                                int32_t threads, tn_token_ids *ids, size_t *ends) {
  return ((const tn_env *)handle)
      ->api->tokenizer_encode_all(handle, tokenizer, texts, n, flags, threads, ids, ends);
}

/* The text of n ids; the caller deletes it (tn_delete). Bytes that are no UTF-8 become U+FFFD, except those
 * of the tokenizer "bytes". TN_EINVAL: an id is not in the vocabulary. */
static inline tn_status tn_tokenizer_decode(const void *handle, const tn_tokenizer *tokenizer,
                                            const int32_t *ids, size_t n, uint32_t flags, char **text,
                                            size_t *bytes) {
  return ((const tn_env *)handle)->api->tokenizer_decode(handle, tokenizer, ids, n, flags, text, bytes);
}

/* The largest id and 1. */
static inline int32_t tn_tokenizer_size(const void *handle, const tn_tokenizer *tokenizer) {
  return ((const tn_env *)handle)->api->tokenizer_size(tokenizer);
}

/* The id of a token as the vocabulary writes it, or -1. */
static inline int32_t tn_tokenizer_id(const void *handle, const tn_tokenizer *tokenizer, const char *token,
                                      size_t bytes) {
  return ((const tn_env *)handle)->api->tokenizer_id(tokenizer, token, bytes);
}

/* A token as the vocabulary writes it, with a NUL behind its bytes; NULL: no token has this id. Valid until
 * the tokenizer is closed. */
static inline const char *tn_tokenizer_token(const void *handle, const tn_tokenizer *tokenizer, int32_t id,
                                             size_t *bytes) {
  return ((const tn_env *)handle)->api->tokenizer_token(tokenizer, id, bytes);
}

/* Decoding of ids that come one after the other. The bytes of a character are held back until it is whole. */
static inline tn_status tn_token_stream_open(const void *handle, const tn_tokenizer *tokenizer,
                                             uint32_t flags, tn_token_stream **stream) {
  return ((const tn_env *)handle)->api->token_stream_open(handle, tokenizer, flags, stream);
}

/* The text that is sure with this id, which may be empty; valid until the next call. */
static inline tn_status tn_token_stream_next(const void *handle, tn_token_stream *stream, int32_t id,
                                             const char **text, size_t *bytes) {
  return ((const tn_env *)handle)->api->token_stream_next(handle, stream, id, text, bytes);
}

/* The rest: U+FFFD for a character that is not whole. */
static inline tn_status tn_token_stream_end(const void *handle, tn_token_stream *stream, const char **text,
                                            size_t *bytes) {
  return ((const tn_env *)handle)->api->token_stream_end(handle, stream, text, bytes);
}

static inline void tn_token_stream_close(const void *handle, tn_token_stream *stream) {
  ((const tn_env *)handle)->api->token_stream_close(handle, stream);
}

TN_END_C
#endif
