/* core/tokenizer/models/word.c: a word through the model. Texts repeat their words, so each encoder keeps the
 * ids of the last word of every slot of a table. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

static tn_status word_encode(tn_encoder *e, const char *text, size_t bytes) {
  switch (e->t->model.kind) {
  case TN_MODEL_BPE: return tn_bpe_word(e, text, bytes);
  case TN_MODEL_UNIGRAM: return tn_unigram_word(e, text, bytes);
  case TN_MODEL_BYTES:
  case TN_MODEL_PIECES: return tn_pieces_word(e, text, bytes);
  default: return tn_wordpiece_word(e, text, bytes);
  }
}

static tn_status word_take(tn_encoder *e, const tn_cached_word *word) {
  if (word->n == 0) return TN_OK;
  TN_TRY(tn_vec_reserve(&e->env, &e->ids, e->ids.n + word->n));
  memcpy(e->ids.v + e->ids.n, word->ids, word->n * sizeof *word->ids);
  e->ids.n += word->n;
  return TN_OK;
}

static void word_keep(tn_encoder *e, tn_cached_word *word, uint32_t hash, const char *text, size_t bytes,
                      size_t from) {
  size_t n = e->ids.n - from;
  if (n > TN_CACHED_IDS) return;
  word->used = 1;
  word->hash = hash;
  word->bytes = (uint8_t)bytes;
  word->n = (uint8_t)n;
  memcpy(word->text, text, bytes);
  if (n > 0) memcpy(word->ids, e->ids.v + from, n * sizeof *word->ids);
}

static tn_status word_cached(tn_encoder *e, const char *text, size_t bytes) {
  if (bytes > TN_CACHED_BYTES) return word_encode(e, text, bytes);
  uint32_t hash = (uint32_t)(tn_map_hash(text, bytes) >> 32);
  tn_cached_word *word = &e->cache[hash % TN_CACHE_SLOTS];
  if (word->used && word->hash == hash && word->bytes == bytes && memcmp(word->text, text, bytes) == 0)
    return word_take(e, word);
  size_t from = e->ids.n;
  TN_TRY(word_encode(e, text, bytes));
  word_keep(e, word, hash, text, bytes, from);
  return TN_OK;
}

/* Where no token has U+2581 behind another character, no merge joins the two, and the texts before and
 * behind are encoded apart. Without this a whole text is one word in tokenizers that have no pre-tokenizer.
 */
static tn_status word_cut(tn_encoder *e, const char *text, size_t bytes) {
  static const char space[] = "\xe2\x96\x81";
  const char *end = text + bytes, *start = text, *at = text;
  while ((at = memmem(at, (size_t)(end - at), space, 3)) != NULL) {
    bool inner = at > start && !(at - start >= 3 && memcmp(at - 3, space, 3) == 0);
    if (inner) {
      TN_TRY(word_cached(e, start, (size_t)(at - start)));
      start = at;
    }
    at += 3;
  }
  return start < end ? word_cached(e, start, (size_t)(end - start)) : TN_OK;
}

tn_status tn_encoder_word(tn_encoder *e, const char *text, size_t bytes) {
  if (e->cache == NULL) return word_encode(e, text, bytes);
  return e->t->model.cut_at_space ? word_cut(e, text, bytes) : word_cached(e, text, bytes);
}
