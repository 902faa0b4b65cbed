/* core/tokenizer/models/sentencepiece_model.c: the model "SentencePiece", with the rules of Google's library
 * where tokenizer.json has others: symbols of the user are whole wherever they stand, merges have the order
 * of scores, and sums of scores are rounded to f32. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tokenizer/tokenizer.h"

/* ---- pieces ---- */

static bool piece_is_text(int32_t type) { return type == TN_PIECE_NORMAL || type == TN_PIECE_USER; }

/* Element i of the list, with its place for messages. */
static tn_json_place piece_place(const tn_tokenizer *t, const tn_json_place *pieces, size_t i) {
  tn_json_place place = {.t = t, .node = json_array_get(pieces->node, i)};
  snprintf(place.path, sizeof place.path, "model.pieces[%zu]", i);
  return place;
}

static tn_status piece_read(tn_tokenizer *t, const tn_json_place *pieces, size_t i, float *score,
                            int32_t *type) {
  tn_json_place place = piece_place(t, pieces, i);
  const json_t *text = json_array_get(place.node, 0), *kind = json_array_get(place.node, 2);
  *score = (float)json_number_value(json_array_get(place.node, 1));
  *type = (int32_t)json_integer_value(kind);
  if (!json_is_string(text) || !json_is_integer(kind) || *type < TN_PIECE_NORMAL || *type > TN_PIECE_BYTE)
    return tn_json_fail(&place, TN_EINVAL, "is no piece with a score and a type");
  if (*type == TN_PIECE_UNUSED)
    return tn_json_fail(&place, TN_EUNSUPPORTED, "pieces that are not used are not supported");
  if (piece_is_text(*type) && json_string_length(text) == 0)
    return tn_json_fail(&place, TN_EINVAL, "is empty");
  TN_TRY(tn_model_set(t, &place, (int64_t)i, json_string_value(text), json_string_length(text)));
  if (*type == TN_PIECE_UNKNOWN && t->model.unknown >= 0)
    return tn_json_fail(&place, TN_EINVAL, "is a second piece for unknown text");
  if (*type == TN_PIECE_UNKNOWN) t->model.unknown = (int32_t)i;
  t->model.byte_fallback |= *type == TN_PIECE_BYTE;
  t->pieces[i].special = *type == TN_PIECE_CONTROL;
  return TN_OK;
}

/* Only pieces of these types are found in texts. A symbol of the user gets the score by which the library
 * prefers it: its bytes times the greatest score, which is not below FLT_MIN, less a tenth. */
static void pieces_index(tn_tokenizer *t, const float *scores, const int32_t *types, double *all) {
  tn_model *m = &t->model;
  float least = FLT_MAX, most = FLT_MIN;
  for (int32_t i = 0; i < t->n; i++) {
    if (types[i] != TN_PIECE_NORMAL) continue;
    least = scores[i] < least ? scores[i] : least;
    most = scores[i] > most ? scores[i] : most;
  }
  m->unknown_score = (double)(least - 10.0f);
  m->cut_at_space = true;
  for (int32_t i = 0; i < t->n; i++) {
    const tn_piece *piece = &t->pieces[i];
    bool user = types[i] == TN_PIECE_USER;
    all[i] = user ? (double)((float)piece->bytes * most) - 0.1 : (double)scores[i];
    if (!piece_is_text(types[i])) continue;
    tn_text_map_set(&m->words, piece->text, piece->bytes, i);
    if (user) tn_text_map_set(&m->user, piece->text, piece->bytes, i);
    if (tn_model_has_inner_space(piece->text, piece->bytes)) m->cut_at_space = false;
  }
  m->scores = all;
}

/* ---- merges ---- */

typedef struct scored_piece {
  float score;
  int32_t id;
} scored_piece;

static int scored_compare(const void *a, const void *b) {
  const scored_piece *x = a, *y = b;
  return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : x->id - y->id;
}

/* All divisions of a piece into two pieces, none of them a symbol of the user, which is never merged. */
static tn_status merges_add_piece(tn_tokenizer *t, int32_t id, uint32_t rank) {
  const tn_piece *piece = &t->pieces[id];
  const tn_model *m = &t->model;
  for (size_t at = 0, start = 0; at < piece->bytes; start = at) {
    tn_unicode_next(piece->text, &at);
    if (at - start < piece->bytes && tn_text_map_get(&m->words, piece->text + start, at - start) < 0)
      return tn_failf(&t->env, TN_EUNSUPPORTED,
                      "%s: \"%.60s\" has a character that is no piece, which is not supported", t->name,
                      piece->text);
    if (start == 0) continue;
    int32_t left = tn_text_map_get(&m->words, piece->text, start);
    int32_t right = tn_text_map_get(&m->words, piece->text + start, piece->bytes - start);
    if (left < 0 || right < 0 || tn_text_map_get(&m->user, piece->text, start) >= 0 ||
        tn_text_map_get(&m->user, piece->text + start, piece->bytes - start) >= 0)
      continue;
    tn_pair_slot *slot = tn_pair_map_find(&m->merges, (uint32_t)left, (uint32_t)right);
    *slot = (tn_pair_slot){tn_pair_key((uint32_t)left, (uint32_t)right), rank, (uint32_t)id};
  }
  return TN_OK;
}

/* Pieces of one score have one rank, so that the leftmost of them is merged first. */
static tn_status merges_read(tn_tokenizer *t, const float *scores, const int32_t *types) {
  size_t n = 0, places = 0;
  scored_piece *order = tn_alloc(&t->env, tn_size_mul((size_t)t->n + 1, sizeof *order));
  if (order == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < t->n; i++) {
    if (types[i] != TN_PIECE_NORMAL) continue;
    order[n++] = (scored_piece){scores[i], i};
    places += t->pieces[i].bytes;
  }
  qsort(order, n, sizeof *order, scored_compare);
  tn_status status = tn_pair_map_open(&t->arena, places, &t->model.merges);
  for (size_t i = 0, rank = 0; status == TN_OK && i < n; i++) {
    if (order[i].score != order[rank].score) rank = i;
    status = merges_add_piece(t, order[i].id, (uint32_t)rank);
  }
  tn_release(&t->env, order);
  return status;
}

/* ---- reading ---- */

static tn_status sentencepiece_read_kind(tn_tokenizer *t, const tn_json_place *model, const float *scores,
                                         const int32_t *types) {
  static const char *const names[] = {"unigram", "bpe", "char"};
  int32_t kind;
  TN_TRY(tn_json_read_word(model, "kind", names, 3, -1, &kind));
  t->model.kind = kind == 0 ? TN_MODEL_UNIGRAM : TN_MODEL_BPE;
  if (kind == 1) return merges_read(t, scores, types);
  return kind == 2 ? tn_pair_map_open(&t->arena, 0, &t->model.merges) : TN_OK;
}

static tn_status sentencepiece_read_pieces(tn_tokenizer *t, const tn_json_place *model, float *scores,
                                           int32_t *types) {
  tn_json_place pieces = tn_json_member(model, "pieces");
  tn_model *m = &t->model;
  double *all = tn_arena_alloc(&t->arena, tn_size_mul((size_t)t->n + 1, sizeof *all));
  if (all == NULL) return TN_ENOMEM;
  TN_TRY(tn_text_map_open(&t->arena, (size_t)t->n, &m->words));
  TN_TRY(tn_text_map_open(&t->arena, (size_t)t->n, &m->user));
  for (int32_t i = 0; i < t->n; i++) TN_TRY(piece_read(t, &pieces, (size_t)i, &scores[i], &types[i]));
  if (m->unknown < 0) return tn_json_fail(&pieces, TN_EINVAL, "have none for unknown text");
  pieces_index(t, scores, types, all);
  return sentencepiece_read_kind(t, model, scores, types);
}

tn_status tn_sentencepiece_read(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *model) {
  tn_json_place pieces = tn_json_member(model, "pieces");
  tn_model *m = &t->model;
  const char *surface;
  size_t n = json_array_size(pieces.node);
  m->sentencepiece = m->fuse_unknown = true;
  TN_TRY(tn_model_reserve_list(t, root, &pieces));
  if ((size_t)t->n != n)
    return tn_json_fail(&pieces, TN_EINVAL, "and added_tokens have different numbers of ids");
  TN_TRY(tn_json_read_text(model, "unk_surface", " \xe2\x81\x87 ", &surface, &m->surface_bytes));
  m->surface = tn_json_keep(t, surface, m->surface_bytes);
  float *scores = tn_alloc(&t->env, tn_size_mul(n + 1, sizeof *scores));
  int32_t *types = tn_alloc(&t->env, tn_size_mul(n + 1, sizeof *types));
  bool room = m->surface != NULL && scores != NULL && types != NULL;
  tn_status status = room ? sentencepiece_read_pieces(t, model, scores, types) : TN_ENOMEM;
  tn_release(&t->env, scores);
  tn_release(&t->env, types);
  return status;
}

/* ---- symbols of the user ---- */

size_t tn_sentencepiece_user(const tn_tokenizer *t, const char *text, size_t bytes) {
  const tn_text_map *user = &t->model.user;
  for (size_t n = bytes < user->longest ? bytes : user->longest; n > 0; n--)
    if (tn_text_map_get(user, text, n) >= 0) return n;
  return 0;
}
