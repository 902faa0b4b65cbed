/* plugins/sources/text.c: a text file as windows of tokens, for models that predict the next token. A token
 * is a byte, a character of the file, or one of a tokenizer.json; characters are numbered in the order of
 * their code points. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/sources.h"
#include "tenon/tokenizer.h"

typedef struct text_options {
  const char *file, *tokenizer;
  int64_t tokens, stride;
  double split;
} text_options;

static const tn_option options[] = {
    TN_OPT(text_options, file, TN_OPT_PATH, NULL, NULL, "the text, in UTF-8 unless tokens are bytes"),
    TN_OPT(
        text_options, tokenizer, TN_OPT_PATH, "characters", "characters|bytes",
        "kind of token: a character, a byte, or a token of a Hugging Face tokenizer.json or a SentencePiece "
        ".model, whose path is given"),
    TN_OPT(text_options, tokens, TN_OPT_INT, "64", "[1, 1048576]", "length of a window"),
    TN_OPT(text_options, stride, TN_OPT_INT, "0", ">= 0",
           "tokens from the start of a window to the next; 0: the length of a window"),
    TN_OPT(text_options, split, TN_OPT_FLOAT, "0.1", "[0, 1]",
           "part of the text, at its end, that is for validation, at most 0.5; 0: none"),
    TN_OPT_END};

enum { MOST_CHARACTERS = 65536, TEXT_PORTION = 1 << 20 };
static const size_t LARGEST_FILE = (size_t)1 << 36;

typedef enum text_kind { TEXT_CHARACTERS, TEXT_BYTES, TEXT_TOKENS } text_kind;

typedef struct text {
  tn_env env; /* that of open, for messages */
  text_options options;
  text_kind kind;
  tn_tokenizer *tokenizer;
  void *memory; /* the tokens: elements of `width` bytes */
  int32_t width;
  size_t length;
  int64_t first, count; /* the first token of the split, and its number of windows */
  const char **names;   /* TEXT_CHARACTERS */
  int64_t classes;
  tn_field fields[2];
} text;

/* ---- tokens ---- */

static int32_t token_at(const text *t, int64_t i) {
  if (t->width == 1) return ((const uint8_t *)t->memory)[i];
  return t->width == 2 ? ((const uint16_t *)t->memory)[i] : ((const int32_t *)t->memory)[i];
}

/* Characters have no bearing on each other, so that portions of the text are numbered in turn. */
static size_t text_portion(const text *t, const uint8_t *bytes, size_t n) {
  if (t->kind == TEXT_TOKENS || n <= TEXT_PORTION) return n;
  size_t end = TEXT_PORTION;
  while ((bytes[end] & 0xc0) == 0x80) end--;
  return end;
}

static tn_status text_make_room(text *t, size_t n, size_t *room) {
  if (n <= *room) return TN_OK;
  size_t more = n > 2 * *room ? n : 2 * *room, width = (size_t)t->width;
  uint8_t *grown = tn_new(&t->env, more * width);
  if (grown == NULL) return TN_ENOMEM;
  if (t->length > 0) memcpy(grown, t->memory, t->length * width);
  tn_delete(&t->env, t->memory);
  t->memory = grown;
  *room = more;
  return TN_OK;
}

static void text_append(text *t, const tn_token_ids *ids) {
  for (size_t i = 0; i < ids->n; i++) {
    if (t->width == 2)
      ((uint16_t *)t->memory)[t->length++] = (uint16_t)ids->v[i];
    else
      ((int32_t *)t->memory)[t->length++] = ids->v[i];
  }
}

/* Tokens take two bytes each where the vocabulary allows that. */
static tn_status text_encode(text *t, const uint8_t *bytes, size_t n) {
  tn_token_ids ids = {NULL, 0, 0};
  tn_status status = TN_OK;
  size_t room = 0, portion;
  t->width = tn_tokenizer_size(&t->env, t->tokenizer) <= UINT16_MAX + 1 ? 2 : 4;
  for (; n > 0 && status == TN_OK; bytes += portion, n -= portion) {
    portion = text_portion(t, bytes, n);
    ids.n = 0;
    status = tn_tokenizer_encode(&t->env, t->tokenizer, (const char *)bytes, portion, 0, &ids);
    if (status == TN_OK) status = text_make_room(t, t->length + ids.n, &room);
    if (status == TN_OK) text_append(t, &ids);
  }
  tn_delete(&t->env, ids.v);
  return status;
}

/* ---- parts ---- */

/* The text behind this place begins with a line, or at least with a character. */
static size_t text_line_start(const uint8_t *bytes, size_t n, size_t at) {
  const uint8_t *end = at < n ? memchr(bytes + at, '\n', n - at) : NULL;
  if (end != NULL) return (size_t)(end - bytes) + 1;
  while (at < n && (bytes[at] & 0xc0) == 0x80) at++;
  return at;
}

/* Of n bytes or tokens, the first that is for validation. */
static size_t text_border(const text *t, size_t n) { return (size_t)((double)n * (1 - t->options.split)); }

/* A tokenizer encodes the lines of its part alone, so that no token spans both. */
static tn_status text_encode_part(text *t, int32_t split, const uint8_t *bytes, size_t n) {
  size_t border = text_border(t, n);
  if (border < n && border > 0) border = text_line_start(bytes, n, border);
  bool train = split == TN_SPLIT_TRAIN;
  return text_encode(t, train ? bytes : bytes + border, train ? border : n - border);
}

/* A window needs one more token than its length: the target of the last one. */
static tn_status text_cut(text *t, int32_t split) {
  bool whole = t->kind != TEXT_TOKENS; /* both parts are in memory */
  int64_t length = (int64_t)t->length, n = t->options.tokens;
  int64_t border = (int64_t)text_border(t, t->length);
  t->first = split == TN_SPLIT_TRAIN || !whole ? 0 : border;
  int64_t available = !whole ? length : split == TN_SPLIT_TRAIN ? border : length - border;
  if (available < n + 1)
    return tn_fail(&t->env, TN_EINVAL, "tokens",
                   "%s: this part has %lld tokens, expected more than %lld, the window", t->options.file,
                   (long long)available, (long long)n);
  int64_t stride = t->options.stride > 0 ? t->options.stride : n;
  t->count = (available - n - 1) / stride + 1;
  return TN_OK;
}

/* ---- opening ---- */

/* The names of classes are the characters. */
static tn_status text_name_characters(text *t) {
  t->names = tn_new(&t->env, (size_t)t->classes * sizeof(char *));
  if (t->classes > 0 && t->names == NULL) return TN_ENOMEM;
  size_t bytes;
  for (int64_t i = 0; i < t->classes; i++)
    t->names[i] = tn_tokenizer_token(&t->env, t->tokenizer, (int32_t)i, &bytes);
  return TN_OK;
}

/* The tokenizer of the weights, if there are any, is that of their training. */
static tn_status text_open_tokenizer(text *t, const uint8_t *bytes, size_t n) {
  const char *file = t->options.file, *learnt = t->kind == TEXT_BYTES ? NULL : tn_env_learnt(&t->env);
  if (learnt != NULL)
    TN_TRY(tn_tokenizer_open_text(&t->env, "the tokenizer of the weights", learnt, strlen(learnt),
                                  &t->tokenizer));
  else if (t->kind == TEXT_CHARACTERS)
    TN_TRY(tn_tokenizer_of_characters(&t->env, file, (const char *)bytes, n, MOST_CHARACTERS, &t->tokenizer));
  else
    TN_TRY(tn_tokenizer_open(&t->env, t->options.tokenizer, &t->tokenizer));
  t->classes = tn_tokenizer_size(&t->env, t->tokenizer);
  return t->kind == TEXT_CHARACTERS ? text_name_characters(t) : TN_OK;
}

static tn_status text_read_tokens(text *t, int32_t split) {
  uint8_t *bytes;
  size_t n;
  TN_TRY(source_read_file(&t->env, t->options.file, LARGEST_FILE, &bytes, &n));
  tn_status status = text_open_tokenizer(t, bytes, n);
  if (status == TN_OK && t->kind == TEXT_BYTES) {
    t->memory = bytes;
    t->width = 1;
    t->length = n;
    return TN_OK;
  }
  if (status == TN_OK) {
    status = t->kind == TEXT_TOKENS ? text_encode_part(t, split, bytes, n) : text_encode(t, bytes, n);
    status = tn_fail_in(&t->env, status, "%s", t->options.file);
  }
  tn_delete(&t->env, bytes);
  return status;
}

static void text_make_fields(text *t) {
  tn_type type = {TN_I32, 1, {t->options.tokens}};
  t->fields[0] = (tn_field){sizeof(tn_field), "tokens", type, TN_FIELD_INPUT, 0, NULL};
  t->fields[1] = (tn_field){sizeof(tn_field), "next", type, TN_FIELD_TARGET, t->classes, t->names};
}

/* `split` was the part for training once: such a value must not train on the part for validation. */
static tn_status text_check_split(const text *t, int32_t split) {
  double part = t->options.split;
  if (part > 0.5)
    return tn_fail(
        &t->env, TN_EINVAL, "split",
        "split = %g: the part of the text that is for validation, expected at most 0.5; to train on "
        "%g of the text, set split = %g",
        part, part, 1 - part);
  if (split == TN_SPLIT_TRAIN || part > 0) return TN_OK;
  return tn_fail(&t->env, TN_EUNAVAILABLE, "split", "all of %s is for training", t->options.file);
}

static tn_status text_prepare(text *t, int32_t split) {
  TN_TRY(text_check_split(t, split));
  TN_TRY(text_read_tokens(t, split));
  TN_TRY(text_cut(t, split));
  text_make_fields(t);
  return TN_OK;
}

static void text_close(tn_env *env, void *source) {
  text *t = source;
  tn_tokenizer_close(env, t->tokenizer);
  tn_delete(env, t->memory);
  tn_delete(env, t->names);
  tn_delete(env, t);
}

static text_kind text_kind_of(const char *tokenizer) {
  if (strcmp(tokenizer, "characters") == 0) return TEXT_CHARACTERS;
  return strcmp(tokenizer, "bytes") == 0 ? TEXT_BYTES : TEXT_TOKENS;
}

static tn_status text_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  text *t = tn_new(env, sizeof(*t));
  if (t == NULL) return TN_ENOMEM;
  t->env = *env;
  t->options = *(const text_options *)opts;
  t->kind = text_kind_of(t->options.tokenizer);
  tn_status status = text_prepare(t, split);
  if (status == TN_OK)
    *source = t;
  else
    text_close(env, t);
  return status;
}

static tn_status text_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  text *t = source;
  description->count = t->count;
  description->n_fields = 2;
  description->fields = t->fields;
  return TN_OK;
}

static tn_status text_read(tn_sample *s, void *source) {
  const text *t = source;
  int32_t *tokens = tn_sample_field(s, 0, NULL), *next = tn_sample_field(s, 1, NULL);
  if (tokens == NULL || next == NULL) return TN_ENOMEM;
  int64_t n = t->options.tokens, stride = t->options.stride > 0 ? t->options.stride : n;
  int64_t start = t->first + s->index * stride;
  for (int64_t i = 0; i < n; i++) tokens[i] = token_at(t, start + i);
  for (int64_t i = 0; i < n; i++) next[i] = token_at(t, start + i + 1);
  return TN_OK;
}

/* The tokenizer travels with the weights, so that `tenon generate` needs no other file. */
static tn_status text_learnt(tn_env *env, void *source, const char **json) {
  const text *t = source;
  *json = tn_tokenizer_json(env, t->tokenizer);
  return TN_OK;
}

const tn_source text_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "text",
                    "a text file as windows of tokens: characters, bytes, or those "
                    "of a tokenizer",
                    text_options, options),
    .types = "tokens: i32[tokens], next: i32[tokens]",
    .example = "source = text\nfile = novel.txt\ntokens = 128",
    .open = text_open,
    .close = text_close,
    .describe = text_describe,
    .read = text_read,
    .learnt = text_learnt,
};
