#include "core/infer/prediction/vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

/* ---- opening ---- */

/* Orders a text of so many bytes against that of a token. */
static int vocabulary_order(const tn_vocabulary *v, int32_t token, const char *text, size_t bytes) {
  size_t length = v->lengths[token], n = bytes < length ? bytes : length;
  int order = memcmp(text, v->texts[token], n);
  return order != 0 ? order : (bytes > length) - (bytes < length);
}

static int vocabulary_compare(const void *a, const void *b, void *context) {
  const tn_vocabulary *v = context;
  int32_t token = *(const int32_t *)a;
  return vocabulary_order(v, *(const int32_t *)b, v->texts[token], v->lengths[token]);
}

static tn_status vocabulary_allocate(const void *handle, tn_vocabulary *v) {
  size_t n = (size_t)v->n + 1;
  v->texts = tn_alloc(handle, tn_size_mul(n, sizeof *v->texts));
  v->lengths = tn_alloc(handle, tn_size_mul(n, sizeof *v->lengths));
  v->sorted = tn_alloc(handle, tn_size_mul(n, sizeof *v->sorted));
  return v->texts != NULL && v->lengths != NULL && v->sorted != NULL ? TN_OK : TN_ENOMEM;
}

static void vocabulary_set(tn_vocabulary *v, int32_t token, const char *text, size_t bytes) {
  v->texts[token] = text;
  v->lengths[token] = bytes;
  if (bytes > v->longest) v->longest = bytes;
  v->sorted[token] = token;
}

static tn_status vocabulary_fill_bytes(const void *handle, tn_vocabulary *v) {
  v->bytes = tn_alloc(handle, BYTES);
  if (v->bytes == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < BYTES; i++) {
    v->bytes[i] = (char)i;
    vocabulary_set(v, i, &v->bytes[i], 1);
  }
  return TN_OK;
}

static void vocabulary_fill_names(const json_t *names, tn_vocabulary *v) {
  for (int32_t i = 0; i < (int32_t)v->n; i++) {
    const char *text = json_string_value(json_array_get(names, (size_t)i));
    vocabulary_set(v, i, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
  }
}

tn_status tn_vocabulary_open(const void *handle, const json_t *names, int64_t n, tn_vocabulary *v) {
  *v = (tn_vocabulary){.n = names != NULL || n == BYTES ? n : 0};
  if (v->n == 0) return TN_OK;
  TN_TRY(vocabulary_allocate(handle, v));
  if (names != NULL)
    vocabulary_fill_names(names, v);
  else
    TN_TRY(vocabulary_fill_bytes(handle, v));
  qsort_r(v->sorted, (size_t)v->n, sizeof *v->sorted, vocabulary_compare, v);
  return TN_OK;
}

void tn_vocabulary_close(const void *handle, tn_vocabulary *v) {
  tn_release(handle, v->texts);
  tn_release(handle, v->lengths);
  tn_release(handle, v->sorted);
  tn_release(handle, v->bytes);
  *v = (tn_vocabulary){.n = 0};
}

/* ---- tokens of a text ---- */

/* -1: no token has this text. */
static int32_t vocabulary_find(const tn_vocabulary *v, const char *text, size_t bytes) {
  int64_t low = 0, high = v->n;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    int order = vocabulary_order(v, v->sorted[middle], text, bytes);
    if (order == 0) return v->sorted[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return -1;
}

static int32_t vocabulary_longest(const tn_vocabulary *v, const char *text, size_t bytes, size_t *taken) {
  for (*taken = bytes < v->longest ? bytes : v->longest; *taken > 0; --*taken) {
    int32_t token = vocabulary_find(v, text, *taken);
    if (token >= 0) return token;
  }
  return -1;
}

/* The bytes of the character that begins here, for the message. */
static int vocabulary_character(const char *text, size_t bytes) {
  size_t n = 1;
  while (n < bytes && n < 4 && ((unsigned char)text[n] & 0xc0) == 0x80) n++;
  return (int)n;
}

tn_status tn_vocabulary_encode(const void *handle, const tn_vocabulary *v, const char *text, size_t bytes,
                               tn_token_list *tokens) {
  size_t taken;
  for (size_t at = 0; at < bytes; at += taken) {
    int32_t token = vocabulary_longest(v, text + at, bytes - at, &taken);
    if (token < 0)
      return tn_failf(handle, TN_EINVAL,
                      "the text has '%.*s' at byte %zu, which is not among the %lld tokens of the model",
                      vocabulary_character(text + at, bytes - at), text + at, at, (long long)v->n);
    TN_TRY(tn_vec_push(handle, tokens, token));
  }
  return TN_OK;
}

const char *tn_vocabulary_text(const tn_vocabulary *v, int32_t token, size_t *bytes) {
  *bytes = v->lengths[token];
  return v->texts[token];
}
