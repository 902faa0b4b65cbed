/* core/tokenizer/models/unigram.c: the division of a word into tokens whose scores have the largest sum
 * (Kudo, 2018), by dynamic programming over the places of the word. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

typedef struct unigram_node {
  double score;  /* of the best division of the text in front of this place */
  int64_t start; /* of its last token; -1: none ends here */
  int32_t id;
} unigram_node;

/* SentencePiece has sums of f32. */
static double unigram_sum(const tn_model *m, double before, double score) {
  return m->sentencepiece ? (double)((float)before + (float)score) : before + score;
}

static void unigram_offer(unigram_node *node, double score, size_t start, int32_t id) {
  if (node->start < 0 || score > node->score) *node = (unigram_node){score, (int64_t)start, id};
}

/* The tokens that begin at one place, and the unknown one where no token is that character. */
static tn_status unigram_extend(tn_encoder *e, unigram_node *nodes, const char *text, size_t bytes, size_t at,
                                size_t character) {
  const tn_model *m = &e->t->model;
  const tn_text_map *map = &m->words;
  size_t most = bytes - at < map->longest ? bytes - at : map->longest;
  bool single = false;
  for (size_t n = 1; n <= most; n++) {
    if (n < most && ((unsigned char)text[at + n] & 0xc0) == 0x80) continue;
    int32_t id = tn_text_map_get(map, text + at, n);
    if (id < 0) continue;
    unigram_offer(&nodes[at + n], unigram_sum(m, nodes[at].score, m->scores[id]), at, id);
    if (n == character) single = true;
  }
  if (single) return TN_OK;
  if (m->unknown < 0)
    return tn_failf(&e->env, TN_EINVAL, "%s: the text has '%.*s', and model.unk_id is absent", e->t->name,
                    (int)character, text + at);
  unigram_offer(&nodes[at + character], unigram_sum(m, nodes[at].score, m->unknown_score), at, m->unknown);
  return TN_OK;
}

/* Unknown text: its bytes where each has a token. */
static tn_status unigram_add_unknown(tn_encoder *e, const char *text, size_t bytes) {
  const tn_model *m = &e->t->model;
  int32_t whole = tn_text_map_get(&m->words, text, bytes); /* as the reference does */
  if (whole >= 0) return tn_vec_push(&e->env, &e->ids, whole);
  bool fallback = m->byte_fallback;
  for (size_t i = 0; fallback && i < bytes; i++) fallback = m->byte_ids[(unsigned char)text[i]] >= 0;
  if (!fallback) return tn_vec_push(&e->env, &e->ids, m->unknown);
  for (size_t i = 0; i < bytes; i++)
    TN_TRY(tn_vec_push(&e->env, &e->ids, m->byte_ids[(unsigned char)text[i]]));
  return TN_OK;
}

/* Links the nodes forward, and joins neighbours that are unknown. */
static tn_status unigram_write(tn_encoder *e, unigram_node *nodes, const char *text, size_t bytes) {
  const int32_t unknown = e->t->model.unknown;
  for (size_t end = bytes, start; end > 0; end = start) {
    start = (size_t)nodes[end].start;
    nodes[start].score = (double)end; /* where the token that begins here ends */
  }
  for (size_t at = 0, end; at < bytes; at = end) {
    end = (size_t)nodes[at].score;
    if (nodes[end].id != unknown) {
      TN_TRY(tn_vec_push(&e->env, &e->ids, nodes[end].id));
      continue;
    }
    while (end < bytes && nodes[(size_t)nodes[end].score].id == unknown) end = (size_t)nodes[end].score;
    TN_TRY(unigram_add_unknown(e, text + at, end - at));
  }
  return TN_OK;
}

tn_status tn_unigram_word(tn_encoder *e, const char *text, size_t bytes) {
  unigram_node *nodes = tn_alloc(&e->env, tn_size_mul(bytes + 1, sizeof *nodes));
  if (nodes == NULL) return TN_ENOMEM;
  for (size_t i = 1; i <= bytes; i++) nodes[i].start = -1;
  tn_status status = TN_OK;
  for (size_t at = 0, next = 0; status == TN_OK && at < bytes; at = next) {
    tn_unicode_next(text, &next);
    status = unigram_extend(e, nodes, text, bytes, at, next - at);
  }
  if (status == TN_OK) status = unigram_write(e, nodes, text, bytes);
  tn_release(&e->env, nodes);
  return status;
}
