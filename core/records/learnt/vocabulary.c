#include "core/records/learnt/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "core/tokenizer/calls.h"

enum { BYTES = 256 };

static bool vocabulary_is_tokenizer(const json_t *part) {
  return json_is_string(json_object_get(json_object_get(part, "model"), "type"));
}

/* The part of the note that a tokenizer wrote, for a source or for one of those that it joins; NULL: the data
 * have none. */
static json_t *vocabulary_part(json_t *note) {
  const char *source, *joined;
  json_t *part, *inner;
  json_object_foreach(note, source, part) {
    if (json_is_object(json_object_get(part, "model"))) return part;
    json_object_foreach(part, joined, inner) if (vocabulary_is_tokenizer(inner)) return inner;
  }
  return NULL;
}

static int32_t vocabulary_end(const json_t *generate, const char *name) {
  const json_t *id = json_object_get(generate, name);
  json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
  return value >= 0 && value < INT32_MAX ? (int32_t)value : -1;
}

void tn_vocabulary_ends(const char *learnt, int32_t *begin, int32_t *end) {
  json_t *note = learnt != NULL ? json_loads(learnt, 0, NULL) : NULL;
  const json_t *generate = json_object_get(vocabulary_part(note), "generate");
  *begin = vocabulary_end(generate, "begin");
  *end = vocabulary_end(generate, "end");
  json_decref(note);
}

static tn_status vocabulary_read_note(const void *handle, const char *learnt, tn_tokenizer **tokenizer) {
  json_t *note = learnt != NULL ? json_loads(learnt, 0, NULL) : NULL, *part = vocabulary_part(note);
  char *json = part != NULL ? json_dumps(part, JSON_COMPACT) : NULL;
  tn_status status = TN_OK;
  if (json != NULL)
    status =
        tn_host_tokenizer_open_text(handle, "the tokenizer of the weights", json, strlen(json), tokenizer);
  else if (part != NULL)
    status = tn_failf(handle, TN_ENOMEM, "out of memory for the tokenizer of the weights");
  free(json);
  json_decref(note);
  return status;
}

/* A model may have classes that are no tokens, so that their number is a multiple of 64. */
tn_status tn_vocabulary_of_note(const void *handle, const char *learnt, int64_t n, tn_tokenizer **tokenizer,
                                int64_t *unfit) {
  *tokenizer = NULL;
  *unfit = 0;
  TN_TRY(vocabulary_read_note(handle, learnt, tokenizer));
  if (*tokenizer == NULL || tn_host_tokenizer_size(*tokenizer) <= n) return TN_OK;
  *unfit = tn_host_tokenizer_size(*tokenizer);
  tn_host_tokenizer_close(handle, *tokenizer);
  *tokenizer = NULL;
  return TN_OK;
}

tn_status tn_vocabulary_of_names(const void *handle, const json_t *names, int64_t n,
                                 tn_tokenizer **tokenizer) {
  *tokenizer = NULL;
  if (names != NULL)
    return tn_host_tokenizer_of_pieces(handle, "the vocabulary of the weights", names, tokenizer);
  return n == BYTES ? tn_host_tokenizer_open(handle, "bytes", tokenizer) : TN_OK;
}

static json_t *vocabulary_name(const void *handle, const tn_tokenizer *tokenizer, int32_t id) {
  char *text = NULL;
  size_t bytes;
  json_t *name = NULL;
  if (tn_host_tokenizer_token(tokenizer, id, &bytes) != NULL &&
      tn_host_tokenizer_decode(handle, tokenizer, &id, 1, TN_TOKENIZE_SPECIAL, &text, &bytes) == TN_OK)
    name = json_stringn(text, bytes);
  tn_release(handle, text);
  return name != NULL ? name : json_null();
}

json_t *tn_vocabulary_names(const void *handle, const tn_tokenizer *tokenizer, int64_t n) {
  json_t *names = json_array();
  for (int64_t i = 0; names != NULL && i < n; i++)
    json_array_append_new(names, vocabulary_name(handle, tokenizer, (int32_t)i));
  return names;
}
