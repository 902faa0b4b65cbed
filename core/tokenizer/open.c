/* core/tokenizer/open.c: opening and closing of tokenizers. */
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/formats/gguf.h"
#include "core/formats/input.h"
#include "core/tokenizer/calls.h"
#include "core/tokenizer/tokenizer.h"

static const size_t LARGEST_FILE = (size_t)1 << 28;
static const char BYTES[] = "{\"model\":{\"type\":\"Bytes\"}}";

/* ---- closing ---- */

static void tokenizer_close_steps(tn_tokenizer *t, tn_steps *steps) {
  for (int32_t i = 0; i < steps->n; i++) tn_pattern_close(&t->env, steps->v[i].pattern);
}

void tn_host_tokenizer_close(const void *handle, tn_tokenizer *t) {
  if (t == NULL) return;
  for (tn_encoder *e = t->idle, *next; e != NULL; e = next) {
    next = e->next;
    tn_encoder_close(e);
  }
  tokenizer_close_steps(t, &t->normalizers);
  tokenizer_close_steps(t, &t->splits);
  for (int32_t i = 0; i < t->decoder.n; i++) tn_pattern_close(&t->env, t->decoder.v[i].replace.pattern);
  pthread_mutex_destroy(&t->lock);
  tn_release(&t->env, t->json);
  tn_arena_free(&t->arena);
  tn_release(handle, t);
}

/* ---- opening ---- */

/* The members that are read, without white space: files may have others, and indentation is half of them. */
static tn_status tokenizer_keep_json(tn_tokenizer *t, const json_t *document) {
  static const char *const names[] = {"version",        "added_tokens", "normalizer", "pre_tokenizer",
                                      "post_processor", "decoder",      "model",      "generate"};
  json_t *kept = json_object();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    json_t *member = json_object_get(document, names[i]);
    if (member != NULL) json_object_set(kept, names[i], member);
  }
  char *json = json_dumps(kept, JSON_COMPACT);
  t->json = json != NULL ? tn_strdup(&t->env, json) : NULL;
  free(json);
  json_decref(kept);
  return t->json != NULL ? TN_OK : tn_failf(&t->env, TN_ENOMEM, "out of memory for the text of %s", t->name);
}

static tn_status tokenizer_read(tn_tokenizer *t, const json_t *document) {
  tn_json_place root = tn_json_root(t, document);
  tn_json_place normalizer = tn_json_member(&root, "normalizer"),
                split = tn_json_member(&root, "pre_tokenizer"), added = tn_json_member(&root, "added_tokens"),
                after = tn_json_member(&root, "post_processor"), decoder = tn_json_member(&root, "decoder");
  TN_TRY(tn_model_read(t, &root));
  TN_TRY(tn_normalizers_read(t, &normalizer));
  TN_TRY(tn_splits_read(t, &split));
  TN_TRY(tn_model_finish(t, &split));
  TN_TRY(tn_added_read(t, &added));
  TN_TRY(tn_template_read(t, &after));
  TN_TRY(tn_decoder_read(t, &decoder));
  TN_TRY(tn_encoder_open(&t->env, t, &t->idle));
  return tn_added_finish(t, t->idle);
}

static tn_status tokenizer_parse(tn_tokenizer *t, const char *json, size_t bytes) {
  json_error_t error;
  json_t *document = json_loadb(json, bytes, JSON_ALLOW_NUL, &error);
  if (document == NULL)
    return tn_failf(&t->env, TN_EINVAL, "%s:%d: is no JSON: %s", t->name, error.line, error.text);
  tn_status status = tokenizer_read(t, document);
  if (status == TN_OK) status = tokenizer_keep_json(t, document);
  json_decref(document);
  return status;
}

tn_status tn_host_tokenizer_open_text(const void *handle, const char *name, const char *json, size_t bytes,
                                      tn_tokenizer **tokenizer) {
  *tokenizer = NULL;
  tn_tokenizer *t = tn_alloc(handle, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  tn_error_record_init(&t->env, &t->record, handle);
  t->arena = tn_arena_new(&t->env);
  pthread_mutex_init(&t->lock, NULL);
  t->name = tn_arena_strdup(&t->arena, name);
  tn_status status = t->name != NULL ? tokenizer_parse(t, json, bytes) : TN_ENOMEM;
  if (status == TN_OK) {
    *tokenizer = t;
    return TN_OK;
  }
  tn_error_move(handle, &t->env);
  tn_host_tokenizer_close(handle, t);
  return status;
}

static tn_status tokenizer_open_file(const void *handle, const char *path, const char *text, size_t bytes,
                                     tn_tokenizer **tokenizer) {
  if (!tn_sentencepiece_is(text, bytes))
    return tn_host_tokenizer_open_text(handle, path, text, bytes, tokenizer);
  char *json;
  TN_TRY(tn_sentencepiece_json(handle, path, text, bytes, &json));
  tn_status status = tn_host_tokenizer_open_text(handle, path, json, strlen(json), tokenizer);
  tn_release(handle, json);
  return status;
}

/* A file of GGUF is larger than other tokenizers are. */
static tn_status tokenizer_is_gguf(const void *handle, const char *path, bool *is) {
  uint8_t start[4];
  tn_input input;
  *is = false;
  TN_TRY(tn_input_open(handle, path, &input));
  tn_status status =
      input.bytes >= sizeof start ? tn_input_read(&input, handle, 0, start, sizeof start) : TN_OK;
  if (status == TN_OK) *is = input.bytes >= sizeof start && tn_gguf_is(start, sizeof start);
  tn_input_close(handle, &input);
  return status;
}

static tn_status tokenizer_open_gguf(const void *handle, const char *path, tn_tokenizer **tokenizer) {
  tn_gguf *file;
  char *json = NULL;
  TN_TRY(tn_gguf_open(handle, path, &file));
  tn_status status = tn_gguf_tokenizer_json(handle, file, &json);
  tn_gguf_close(file);
  if (status == TN_OK && json == NULL) status = tn_failf(handle, TN_EINVAL, "%s: has no tokenizer", path);
  if (status == TN_OK) status = tn_host_tokenizer_open_text(handle, path, json, strlen(json), tokenizer);
  tn_release(handle, json);
  return status;
}

tn_status tn_host_tokenizer_open(const void *handle, const char *path, tn_tokenizer **tokenizer) {
  *tokenizer = NULL;
  if (strcmp(path, "bytes") == 0)
    return tn_host_tokenizer_open_text(handle, path, BYTES, sizeof BYTES - 1, tokenizer);
  char *text;
  size_t bytes;
  bool gguf;
  TN_TRY(tokenizer_is_gguf(handle, path, &gguf));
  if (gguf) return tokenizer_open_gguf(handle, path, tokenizer);
  TN_TRY(tn_file_read(handle, path, LARGEST_FILE, &text, &bytes));
  tn_status status = tokenizer_open_file(handle, path, text, bytes, tokenizer);
  tn_release(handle, text);
  return status;
}

/* ---- characters ---- */

enum { CODE_POINTS = 0x110000 };

static tn_status characters_find(const void *handle, const char *name, const char *text, size_t bytes,
                                 unsigned char *seen) {
  size_t invalid = tn_unicode_invalid(text, bytes);
  if (invalid < bytes)
    return tn_failf(handle, TN_EINVAL, "%s: byte %zu is not UTF-8; use bytes as tokens", name, invalid);
  for (size_t at = 0; at < bytes;) seen[tn_unicode_next(text, &at)] = 1;
  return TN_OK;
}

/* U+0000, which some readers of JSON refuse, is the number 0. */
static json_t *characters_piece(int32_t code) {
  char character[4];
  return code == 0 ? json_integer(0) : json_stringn(character, tn_unicode_write(code, character));
}

static tn_status characters_write(const void *handle, const char *name, const unsigned char *seen,
                                  int32_t most, json_t *pieces) {
  int32_t n = 0;
  for (int32_t code = 0; code < CODE_POINTS; code++) n += seen[code];
  if (n > most)
    return tn_failf(handle, TN_EINVAL,
                    "%s: has %d different characters, expected at most %d; use bytes as tokens", name, n,
                    most);
  for (int32_t code = 0; code < CODE_POINTS; code++)
    if (seen[code] && json_array_append_new(pieces, characters_piece(code)) != 0)
      return tn_failf(handle, TN_ENOMEM, "out of memory for the characters of %s", name);
  return TN_OK;
}

tn_status tn_host_tokenizer_of_pieces(const void *handle, const char *name, const json_t *pieces,
                                      tn_tokenizer **tokenizer) {
  *tokenizer = NULL;
  json_t *file = json_pack("{s:{s:s, s:O}}", "model", "type", "Pieces", "pieces", pieces);
  char *json = file != NULL ? json_dumps(file, JSON_COMPACT) : NULL;
  json_decref(file);
  if (json == NULL) return tn_failf(handle, TN_ENOMEM, "out of memory for the vocabulary of %s", name);
  tn_status status = tn_host_tokenizer_open_text(handle, name, json, strlen(json), tokenizer);
  free(json);
  return status;
}

tn_status tn_host_tokenizer_of_characters(const void *handle, const char *name, const char *text,
                                          size_t bytes, int32_t most, tn_tokenizer **tokenizer) {
  *tokenizer = NULL;
  unsigned char *seen = tn_alloc(handle, CODE_POINTS);
  json_t *pieces = json_array();
  tn_status status = seen != NULL ? characters_find(handle, name, text, bytes, seen) : TN_ENOMEM;
  if (status == TN_OK) status = characters_write(handle, name, seen, most, pieces);
  if (status == TN_OK) status = tn_host_tokenizer_of_pieces(handle, name, pieces, tokenizer);
  tn_release(handle, seen);
  json_decref(pieces);
  return status;
}

/* ---- the vocabulary ---- */

const char *tn_host_tokenizer_json(const tn_tokenizer *t) { return t->json; }

int32_t tn_host_tokenizer_size(const tn_tokenizer *t) { return t->n; }

int32_t tn_host_tokenizer_id(const tn_tokenizer *t, const char *token, size_t bytes) {
  int32_t id = tn_text_map_get(&t->by_added, token, bytes);
  return id >= 0 ? id : tn_text_map_get(&t->by_text, token, bytes);
}

const char *tn_host_tokenizer_token(const tn_tokenizer *t, int32_t id, size_t *bytes) {
  bool known = id >= 0 && id < t->n && t->pieces[id].text != NULL;
  *bytes = known ? t->pieces[id].bytes : 0;
  return known ? t->pieces[id].text : NULL;
}
