#include "core/train/prediction/vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 256 };

/* ---- opening ---- */

static int vocabulary_compare(const void *a, const void *b, void *context) {
  const tn_vocabulary *v = context;
  return strcmp(v->texts[*(const int32_t *)a], v->texts[*(const int32_t *)b]);
}

static tn_status vocabulary_allocate(const void *handle, tn_vocabulary *v) {
  size_t n = (size_t)v->n + 1;
  v->texts = tn_alloc(handle, tn_size_mul(n, sizeof *v->texts));
  v->lengths = tn_alloc(handle, tn_size_mul(n, sizeof *v->lengths));
  v->sorted = tn_alloc(handle, tn_size_mul(n, sizeof *v->sorted));
  return v->texts != NULL && v->lengths != NULL && v->sorted != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_vocabulary_open(const void *handle, const json_t *names, int64_t n, tn_vocabulary *v) {
  *v = (tn_vocabulary){.bytes = names == NULL && n == BYTES};
  if (names == NULL) {
    if (v->bytes) v->n = n;
    return TN_OK;
  }
  v->n = n;
  TN_TRY(vocabulary_allocate(handle, v));
  for (int32_t i = 0; i < (int32_t)n; i++) {
    const char *text = json_string_value(json_array_get(names, (size_t)i));
    v->texts[i] = text != NULL ? text : "";
    v->lengths[i] = strlen(v->texts[i]);
    if (v->lengths[i] > v->longest) v->longest = v->lengths[i];
    v->sorted[i] = i;
  }
  qsort_r(v->sorted, (size_t)n, sizeof *v->sorted, vocabulary_compare, v);
  return TN_OK;
}

void tn_vocabulary_close(const void *handle, tn_vocabulary *v) {
  tn_release(handle, v->texts);
  tn_release(handle, v->lengths);
  tn_release(handle, v->sorted);
  *v = (tn_vocabulary){.n = 0};
}

/* ---- tokens of a text ---- */

/* Orders a text of so many bytes against that of a token. */
static int vocabulary_order(const tn_vocabulary *v, int32_t token, const char *text, size_t bytes) {
  size_t length = v->lengths[token], n = bytes < length ? bytes : length;
  int order = memcmp(text, v->texts[token], n);
  return order != 0 ? order : (bytes > length) - (bytes < length);
}

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
  if (v->bytes) {
    *taken = 1;
    return (unsigned char)*text;
  }
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
  static const char all[BYTES] = {
#define ROW(x)                                                                                               \
  (char)(x), (char)((x) + 1), (char)((x) + 2), (char)((x) + 3), (char)((x) + 4), (char)((x) + 5),            \
      (char)((x) + 6), (char)((x) + 7)
      ROW(0),   ROW(8),   ROW(16),  ROW(24),  ROW(32),  ROW(40),  ROW(48),  ROW(56),  ROW(64),
      ROW(72),  ROW(80),  ROW(88),  ROW(96),  ROW(104), ROW(112), ROW(120), ROW(128), ROW(136),
      ROW(144), ROW(152), ROW(160), ROW(168), ROW(176), ROW(184), ROW(192), ROW(200), ROW(208),
      ROW(216), ROW(224), ROW(232), ROW(240), ROW(248)
#undef ROW
  };
  *bytes = v->bytes ? 1 : v->lengths[token];
  return v->bytes ? &all[token] : v->texts[token];
}
