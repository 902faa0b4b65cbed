/* plugins/sources/text.c: a text file as windows of tokens, for models that predict the next token. A token
 * is a byte, or a character of the file; characters are numbered in the order of their code points. */
#include <stdlib.h>

#include "plugins/sources/sources.h"
#include "plugins/sources/utf8.h"

enum { LEVEL_CHARACTERS = 0, LEVEL_BYTES = 1 };

typedef struct text_options {
  const char *file;
  int32_t level;
  int64_t tokens, stride;
  double split;
} text_options;

static const tn_option options[] = {
    TN_OPT(text_options, file, TN_OPT_PATH, NULL, NULL, "the text, in UTF-8 unless tokens are bytes"),
    TN_OPT(text_options, level, TN_OPT_ENUM, "characters", "characters|bytes", "kind of token"),
    TN_OPT(text_options, tokens, TN_OPT_INT, "64", "[1, 1048576]", "length of a window"),
    TN_OPT(text_options, stride, TN_OPT_INT, "0", ">= 0",
           "tokens from the start of a window to the next; 0: the length of a window"),
    TN_OPT(text_options, split, TN_OPT_FLOAT, "0.9", "(0, 1]",
           "fraction of the text for training; the rest is for validation"),
    TN_OPT_END};

enum { CODE_POINTS = 0x110000, MOST_CHARACTERS = 65536 };
static const size_t LARGEST_FILE = (size_t)1 << 36;

typedef struct text {
  tn_env env; /* that of open, for messages */
  text_options options;
  void *memory;         /* the memory of bytes or ids */
  const uint8_t *bytes; /* LEVEL_BYTES: the tokens themselves */
  const uint16_t *ids;  /* LEVEL_CHARACTERS */
  int64_t first, count; /* the first token of the split, and its number of windows */
  char *name_bytes;
  const char **names;
  int64_t classes;
  tn_field fields[2];
} text;

/* Sets seen[code point] to 1 for each character of the text, and *length to the number of characters. */
static tn_status find_characters(text *t, const uint8_t *bytes, size_t n, uint16_t *seen, size_t *length) {
  *length = 0;
  for (size_t at = 0; at < n; ++*length) {
    int32_t code = utf8_next(bytes, n, &at);
    if (code < 0)
      return tn_fail(&t->env, TN_EINVAL, "file", "%s: byte %zu is not UTF-8; use level = bytes",
                     t->options.file, at);
    seen[code] = 1;
  }
  return TN_OK;
}

/* Numbers the characters of the text: seen[code point] becomes the number. */
static tn_status number_characters(text *t, uint16_t *seen) {
  for (int32_t code = 0; code < CODE_POINTS; code++) t->classes += seen[code];
  if (t->classes > MOST_CHARACTERS)
    return tn_fail(&t->env, TN_EINVAL, "file",
                   "%s: has %lld different characters, expected at most %d; use level = bytes",
                   t->options.file, (long long)t->classes, MOST_CHARACTERS);
  t->names = tn_new(&t->env, (size_t)t->classes * sizeof(char *));
  t->name_bytes = tn_new(&t->env, (size_t)t->classes * (UTF8_MOST + 1));
  if (t->names == NULL || t->name_bytes == NULL) return TN_ENOMEM;
  uint16_t next = 0;
  for (int32_t code = 0; code < CODE_POINTS; code++) {
    if (!seen[code]) continue;
    char *name = t->name_bytes + (size_t)next * (UTF8_MOST + 1);
    name[utf8_write(code, name)] = '\0';
    t->names[next] = name;
    seen[code] = next++;
  }
  return TN_OK;
}

static tn_status number_text(text *t, const uint8_t *bytes, size_t n, uint16_t *seen, size_t *length) {
  TN_TRY(find_characters(t, bytes, n, seen, length));
  TN_TRY(number_characters(t, seen));
  uint16_t *ids = tn_new(&t->env, *length * sizeof(*ids));
  if (ids == NULL) return TN_ENOMEM;
  t->memory = ids;
  t->ids = ids;
  for (size_t at = 0; at < n;) *ids++ = seen[utf8_next(bytes, n, &at)];
  return TN_OK;
}

static tn_status read_characters(text *t, size_t *length) {
  uint8_t *bytes;
  size_t n;
  TN_TRY(source_read_file(&t->env, t->options.file, LARGEST_FILE, &bytes, &n));
  uint16_t *seen = tn_new(&t->env, CODE_POINTS * sizeof(*seen));
  tn_status status = seen != NULL ? number_text(t, bytes, n, seen, length) : TN_ENOMEM;
  tn_delete(&t->env, seen);
  tn_delete(&t->env, bytes);
  return status;
}

static tn_status read_bytes(text *t, size_t *length) {
  uint8_t *bytes;
  tn_status status = source_read_file(&t->env, t->options.file, LARGEST_FILE, &bytes, length);
  t->memory = bytes;
  t->bytes = bytes;
  t->classes = 256;
  return status;
}

/* A window needs one more token than its length: the target of the last one. */
static tn_status text_cut(text *t, int32_t split, size_t length) {
  int64_t border = (int64_t)((double)length * t->options.split), n = t->options.tokens;
  t->first = split == TN_SPLIT_TRAIN ? 0 : border;
  int64_t available = split == TN_SPLIT_TRAIN ? border : (int64_t)length - border;
  if (split == TN_SPLIT_VALID && t->options.split == 1)
    return tn_fail(&t->env, TN_EUNAVAILABLE, "split", "all of %s is for training", t->options.file);
  if (available < n + 1)
    return tn_fail(&t->env, TN_EINVAL, "tokens",
                   "%s: this part has %lld tokens, expected more than %lld, the window", t->options.file,
                   (long long)available, (long long)n);
  int64_t stride = t->options.stride > 0 ? t->options.stride : n;
  t->count = (available - n - 1) / stride + 1;
  return TN_OK;
}

static void text_make_fields(text *t) {
  tn_type type = {TN_I32, 1, {t->options.tokens}};
  t->fields[0] = (tn_field){sizeof(tn_field), "tokens", type, TN_FIELD_INPUT, 0, NULL};
  t->fields[1] = (tn_field){sizeof(tn_field), "next", type, TN_FIELD_TARGET, t->classes, t->names};
}

static void text_close(tn_env *env, void *source) {
  text *t = source;
  tn_delete(env, t->memory);
  tn_delete(env, t->names);
  tn_delete(env, t->name_bytes);
  tn_delete(env, t);
}

static tn_status text_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  text *t = tn_new(env, sizeof(*t));
  if (t == NULL) return TN_ENOMEM;
  t->env = *env;
  t->options = *(const text_options *)opts;
  size_t length = 0;
  tn_status status = t->options.level == LEVEL_BYTES ? read_bytes(t, &length) : read_characters(t, &length);
  if (status == TN_OK) status = text_cut(t, split, length);
  if (status == TN_OK) {
    text_make_fields(t);
    *source = t;
  } else {
    text_close(env, t);
  }
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

static int32_t token_at(const text *t, int64_t i) { return t->ids != NULL ? t->ids[i] : t->bytes[i]; }

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

const tn_source text_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "text", "a text file as windows of characters or bytes",
                    text_options, options),
    .types = "tokens: i32[tokens], next: i32[tokens]",
    .example = "source = text\nfile = novel.txt\ntokens = 128",
    .open = text_open,
    .close = text_close,
    .describe = text_describe,
    .read = text_read,
};
