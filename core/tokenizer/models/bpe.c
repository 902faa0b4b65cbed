/* core/tokenizer/models/bpe.c: byte-pair encoding: of all neighbours that have a merge, the pair of the
 * lowest rank is joined, the leftmost of equals, until none is left. Short words are searched again for every
 * merge; long ones have a heap of candidates. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

enum { SHORT_WORD = 32 };

/* ---- symbols ---- */

/* A run of characters without a symbol becomes one unknown token, or one each. */
typedef struct bpe_unknown {
  bool pending;
} bpe_unknown;

static tn_status bpe_add(tn_encoder *e, int32_t id) {
  return tn_vec_push(&e->env, &e->symbols, ((tn_symbol){.id = id}));
}

static tn_status bpe_flush(tn_encoder *e, bpe_unknown *u) {
  bool pending = u->pending;
  u->pending = false;
  return pending ? bpe_add(e, e->t->model.unknown) : TN_OK;
}

/* The symbol of a character, with the affixes that its place in the word asks for; -1: none. */
static int32_t bpe_symbol(tn_encoder *e, const char *text, size_t bytes, bool first, bool last) {
  const tn_model *m = &e->t->model;
  bool prefix = !first && m->prefix_bytes > 0, suffix = last && m->suffix_bytes > 0;
  if (!prefix && !suffix)
    return e->t->byte_level ? m->byte_ids[(unsigned char)text[0]] : tn_text_map_get(&m->words, text, bytes);
  char character[4];
  if (e->t->byte_level) {
    bytes = tn_byte_character((unsigned char)text[0], character);
    text = character;
  }
  e->word.n = 0;
  if (prefix) tn_text_addn(&e->word, m->prefix, m->prefix_bytes);
  tn_text_addn(&e->word, text, bytes);
  if (suffix) tn_text_addn(&e->word, m->suffix, m->suffix_bytes);
  return e->word.failed ? -1 : tn_text_map_get(&e->t->by_text, e->word.v, e->word.n);
}

/* The bytes of a character, where each has a token. */
static tn_status bpe_add_bytes(tn_encoder *e, const char *text, size_t bytes, bool *added) {
  const int32_t *ids = e->t->model.byte_ids;
  *added = e->t->model.byte_fallback && !e->t->byte_level;
  for (size_t i = 0; *added && i < bytes; i++) *added = ids[(unsigned char)text[i]] >= 0;
  for (size_t i = 0; *added && i < bytes; i++) TN_TRY(bpe_add(e, ids[(unsigned char)text[i]]));
  return TN_OK;
}

static tn_status bpe_add_unknown(tn_encoder *e, bpe_unknown *u) {
  const tn_model *m = &e->t->model;
  if (m->unknown_missing)
    return tn_failf(&e->env, TN_EINVAL, "%s: model.unk_token is not in the vocabulary, and the text needs it",
                    e->t->name);
  if (m->unknown < 0) return TN_OK; /* the reference leaves the character out */
  if (!m->fuse_unknown) TN_TRY(bpe_flush(e, u));
  u->pending = true;
  return TN_OK;
}

static tn_status bpe_read_symbols(tn_encoder *e, const char *text, size_t bytes) {
  bpe_unknown unknown = {false};
  e->symbols.n = 0;
  for (size_t at = 0, start = 0; at < bytes; start = at) {
    at += e->t->byte_level ? 1 : tn_sentencepiece_user(e->t, text + at, bytes - at);
    if (at == start) tn_unicode_next(text, &at);
    int32_t id = bpe_symbol(e, text + start, at - start, start == 0, at == bytes);
    if (id >= 0) {
      TN_TRY(bpe_flush(e, &unknown));
      TN_TRY(bpe_add(e, id));
      continue;
    }
    bool added;
    TN_TRY(bpe_add_bytes(e, text + start, at - start, &added));
    if (!added) TN_TRY(bpe_add_unknown(e, &unknown));
  }
  return e->word.failed ? TN_ENOMEM : bpe_flush(e, &unknown);
}

/* ---- short words ---- */

enum { NO_RANK = UINT32_MAX };

static uint32_t bpe_rank(const tn_model *m, int32_t left, int32_t right, uint32_t *joined) {
  const tn_pair_slot *slot = tn_pair_map_find(&m->merges, (uint32_t)left, (uint32_t)right);
  *joined = slot->second;
  return slot->key != 0 ? slot->first : NO_RANK;
}

static int32_t bpe_lowest(const uint32_t *ranks, int32_t pairs) {
  int32_t lowest = 0;
  for (int32_t i = 1; i < pairs; i++)
    if (ranks[i] < ranks[lowest]) lowest = i;
  return lowest;
}

static tn_status bpe_merge_short(tn_encoder *e) {
  const tn_model *m = &e->t->model;
  int32_t n = (int32_t)e->symbols.n, ids[SHORT_WORD];
  uint32_t ranks[SHORT_WORD], joined[SHORT_WORD];
  for (int32_t i = 0; i < n; i++) ids[i] = e->symbols.v[i].id;
  for (int32_t i = 0; i + 1 < n; i++) ranks[i] = bpe_rank(m, ids[i], ids[i + 1], &joined[i]);
  while (n > 1) {
    int32_t at = bpe_lowest(ranks, n - 1);
    if (ranks[at] == NO_RANK) break;
    ids[at] = (int32_t)joined[at];
    n--;
    for (int32_t i = at + 1; i < n; i++) ids[i] = ids[i + 1];
    for (int32_t i = at; i + 1 < n; i++) ranks[i] = ranks[i + 1], joined[i] = joined[i + 1];
    if (at > 0) ranks[at - 1] = bpe_rank(m, ids[at - 1], ids[at], &joined[at - 1]);
    if (at + 1 < n) ranks[at] = bpe_rank(m, ids[at], ids[at + 1], &joined[at]);
  }
  for (int32_t i = 0; i < n; i++) TN_TRY(tn_vec_push(&e->env, &e->ids, ids[i]));
  return TN_OK;
}

/* ---- long words: a heap of (rank, place) ---- */

static tn_status bpe_heap_push(tn_encoder *e, uint64_t entry) {
  TN_TRY(tn_vec_push(&e->env, &e->heap, entry));
  uint64_t *v = e->heap.v;
  size_t at = e->heap.n - 1;
  for (; at > 0 && entry < v[(at - 1) / 2]; at = (at - 1) / 2) v[at] = v[(at - 1) / 2];
  v[at] = entry;
  return TN_OK;
}

static uint64_t bpe_heap_pop(tn_encoder *e) {
  uint64_t *v = e->heap.v, top = v[0], last = v[--e->heap.n];
  size_t n = e->heap.n, at = 0;
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && v[child + 1] < v[child]) child++;
    if (last <= v[child]) break;
    v[at] = v[child];
  }
  v[at] = last;
  return top;
}

/* A candidate: the symbol at `at` and the one behind it. */
static tn_status bpe_offer(tn_encoder *e, int32_t at) {
  tn_symbol *s = e->symbols.v;
  uint32_t joined;
  if (at < 0 || s[at].behind < 0) return TN_OK;
  uint32_t rank = bpe_rank(&e->t->model, s[at].id, s[s[at].behind].id, &joined);
  return rank != NO_RANK ? bpe_heap_push(e, (uint64_t)rank << 32 | (uint32_t)at) : TN_OK;
}

/* Symbol `at` takes in the one behind it, whose id becomes -1. */
static tn_status bpe_join(tn_encoder *e, int32_t at, uint32_t joined) {
  tn_symbol *s = e->symbols.v;
  int32_t right = s[at].behind;
  s[at].id = (int32_t)joined;
  s[at].behind = s[right].behind;
  s[right].id = -1;
  if (s[at].behind >= 0) s[s[at].behind].before = at;
  TN_TRY(bpe_offer(e, s[at].before));
  return bpe_offer(e, at);
}

/* A candidate whose pair has been joined otherwise has another rank by now, or none. */
static tn_status bpe_merge_long(tn_encoder *e) {
  int32_t n = (int32_t)e->symbols.n;
  tn_symbol *s = e->symbols.v;
  e->heap.n = 0;
  for (int32_t i = 0; i < n; i++) s[i].before = i - 1, s[i].behind = i + 1 < n ? i + 1 : -1;
  for (int32_t i = 0; i + 1 < n; i++) TN_TRY(bpe_offer(e, i));
  while (e->heap.n > 0) {
    uint64_t top = bpe_heap_pop(e);
    int32_t at = (int32_t)(uint32_t)top;
    uint32_t joined;
    if (s[at].id < 0 || s[at].behind < 0) continue;
    if (bpe_rank(&e->t->model, s[at].id, s[s[at].behind].id, &joined) == (uint32_t)(top >> 32))
      TN_TRY(bpe_join(e, at, joined));
  }
  for (int32_t i = 0; i < n; i++)
    if (s[i].id >= 0) TN_TRY(tn_vec_push(&e->env, &e->ids, s[i].id));
  return TN_OK;
}

tn_status tn_bpe_word(tn_encoder *e, const char *text, size_t bytes) {
  const tn_model *m = &e->t->model;
  if (bytes >= INT32_MAX)
    return tn_failf(&e->env, TN_EINVAL, "a piece of the text has %zu bytes, expected less than 2 GiB", bytes);
  int32_t whole = m->ignore_merges ? tn_text_map_get(&m->words, text, bytes) : -1;
  if (whole >= 0) return tn_vec_push(&e->env, &e->ids, whole);
  TN_TRY(bpe_read_symbols(e, text, bytes));
  return e->symbols.n <= SHORT_WORD ? bpe_merge_short(e) : bpe_merge_long(e);
}
