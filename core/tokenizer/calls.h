/* core/tokenizer/calls.h: the functions behind tenon/tokenizer.h, as the core calls them. */
#pragma once

#include <jansson.h>

#include "core/formats/gguf.h"
#include "tenon/tokenizer.h"

/* The tokenizer of a file of GGUF as JSON, which the caller releases; its member "generate" has the ids
 * "begin", in front of every text, and "end", behind it, where the file names them. NULL: the file has no
 * tokenizer. TN_EUNSUPPORTED: it is of another kind. */
tn_status tn_gguf_tokenizer_json(const void *handle, tn_gguf *file, char **json);

tn_status tn_host_tokenizer_open(const void *handle, const char *path, tn_tokenizer **tokenizer);
tn_status tn_host_tokenizer_open_text(const void *handle, const char *name, const char *json, size_t bytes,
                                      tn_tokenizer **tokenizer);
tn_status tn_host_tokenizer_of_characters(const void *handle, const char *name, const char *text,
                                          size_t bytes, int32_t most, tn_tokenizer **tokenizer);
/* A tokenizer of these texts: the longest that fits is taken at each place. */
tn_status tn_host_tokenizer_of_pieces(const void *handle, const char *name, const json_t *pieces,
                                      tn_tokenizer **tokenizer);
void tn_host_tokenizer_close(const void *handle, tn_tokenizer *tokenizer);
const char *tn_host_tokenizer_json(const tn_tokenizer *tokenizer);
int32_t tn_host_tokenizer_size(const tn_tokenizer *tokenizer);
int32_t tn_host_tokenizer_id(const tn_tokenizer *tokenizer, const char *token, size_t bytes);
const char *tn_host_tokenizer_token(const tn_tokenizer *tokenizer, int32_t id, size_t *bytes);
tn_status tn_host_tokenizer_encode(const void *handle, const tn_tokenizer *tokenizer, const char *text,
                                   size_t bytes, uint32_t flags, tn_token_ids *ids);
tn_status tn_host_tokenizer_encode_all(const void *handle, const tn_tokenizer *tokenizer,
                                       const tn_token_text *texts, size_t n, uint32_t flags, int32_t threads,
                                       tn_token_ids *ids, size_t *ends);
tn_status tn_host_tokenizer_decode(const void *handle, const tn_tokenizer *tokenizer, const int32_t *ids,
                                   size_t n, uint32_t flags, char **text, size_t *bytes);
tn_status tn_host_token_stream_open(const void *handle, const tn_tokenizer *tokenizer, uint32_t flags,
                                    tn_token_stream **stream);
tn_status tn_host_token_stream_next(const void *handle, tn_token_stream *stream, int32_t id,
                                    const char **text, size_t *bytes);
tn_status tn_host_token_stream_end(const void *handle, tn_token_stream *stream, const char **text,
                                   size_t *bytes);
void tn_host_token_stream_close(const void *handle, tn_token_stream *stream);
