/* core/tokenizer/models/wordpiece.c: WordPiece, words, bytes and pieces: at each place the longest token that
 * fits.
 */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

static tn_status wordpiece_unknown(tn_encoder *e) {
  if (e->t->model.unknown < 0)
    return tn_failf(&e->env, TN_EINVAL, "%s: model.unk_token is not in the vocabulary, and the text needs it",
                    e->t->name);
  return tn_vec_push(&e->env, &e->ids, e->t->model.unknown);
}

static int64_t wordpiece_characters(const char *text, size_t bytes) {
  int64_t n = 0;
  for (size_t i = 0; i < bytes; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
  return n;
}

/* The longest token that text[0..bytes] begins with, at a border between characters; *bytes is its length. */
static int32_t wordpiece_longest(const tn_text_map *map, const char *text, size_t least, size_t *bytes) {
  if (*bytes > map->longest) *bytes = map->longest;
  for (; *bytes > least; --*bytes) {
    if (((unsigned char)text[*bytes] & 0xc0) == 0x80) continue;
    int32_t id = tn_text_map_get(map, text, *bytes);
    if (id >= 0) return id;
  }
  return -1;
}

/* e->word is the prefix and the whole word, so that the prefix can be put in front of each place in turn. */
static tn_status wordpiece_pieces(tn_encoder *e, size_t bytes, bool *fits) {
  const tn_model *m = &e->t->model;
  char *text = e->word.v;
  size_t n, prefix = m->prefix_bytes;
  for (size_t at = 0; at < bytes; at += n) {
    size_t before = at > 0 ? prefix : 0;
    if (at > 0) memmove(text + at, m->prefix, prefix);
    n = bytes - at + before;
    int32_t id = wordpiece_longest(&e->t->by_text, text + prefix + at - before, before, &n);
    *fits = id >= 0;
    if (!*fits) return TN_OK;
    TN_TRY(tn_vec_push(&e->env, &e->ids, id));
    n -= before;
  }
  return TN_OK;
}

tn_status tn_wordpiece_word(tn_encoder *e, const char *text, size_t bytes) {
  const tn_model *m = &e->t->model;
  if (m->kind == TN_MODEL_WORDS) {
    int32_t id = tn_text_map_get(&e->t->by_text, text, bytes);
    return id >= 0 ? tn_vec_push(&e->env, &e->ids, id) : wordpiece_unknown(e);
  }
  if (wordpiece_characters(text, bytes) > m->most_characters) return wordpiece_unknown(e);
  size_t before = e->ids.n;
  bool fits = true;
  e->word.n = 0;
  tn_text_addn(&e->word, m->prefix, m->prefix_bytes);
  tn_text_addn(&e->word, text, bytes);
  if (e->word.failed) return TN_ENOMEM;
  TN_TRY(wordpiece_pieces(e, bytes, &fits));
  if (fits) return TN_OK;
  e->ids.n = before;
  return wordpiece_unknown(e);
}

/* The bytes of the character that begins here, for the message. */
static int pieces_character(const char *text, size_t bytes) {
  size_t n = tn_text_character_bytes(text, bytes);
  return n > 0 ? (int)n : 1;
}

/* The longest piece that n bytes begin with; *bytes is its length. -1: none. */
static int32_t pieces_find(const tn_tokenizer *t, const char *text, size_t n, size_t *bytes) {
  if (t->model.characters) {
    *bytes = tn_text_character_bytes(text, n);
    return *bytes == 1 ? t->model.byte_ids[(unsigned char)text[0]]
                       : tn_text_map_get(&t->by_text, text, *bytes);
  }
  for (*bytes = n < t->by_text.longest ? n : t->by_text.longest; *bytes > 0; --*bytes) {
    int32_t id = tn_text_map_get(&t->by_text, text, *bytes);
    if (id >= 0) return id;
  }
  return -1;
}

tn_status tn_pieces_word(tn_encoder *e, const char *text, size_t bytes) {
  size_t n;
  for (size_t at = 0; at < bytes; at += n) {
    int32_t id = pieces_find(e->t, text + at, bytes - at, &n);
    if (id < 0)
      return tn_failf(&e->env, TN_EINVAL,
                      "the text has '%.*s' at byte %zu, which is not among the %d tokens of the model",
                      pieces_character(text + at, bytes - at), text + at, at, e->t->n);
    TN_TRY(tn_vec_push(&e->env, &e->ids, id));
  }
  return TN_OK;
}
