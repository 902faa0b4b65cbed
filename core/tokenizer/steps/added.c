/* core/tokenizer/steps/added.c: added tokens, which are found in a text as they are. Where several fit, the
 * first one is taken, and of those that begin there the longest. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

enum { MOST_ADDED = 1 << 20 };

/* ---- reading ---- */

static tn_status added_read_flags(const tn_json_place *place, tn_added_token *token) {
  TN_TRY(tn_json_read_flag(place, "special", false, &token->special));
  TN_TRY(tn_json_read_flag(place, "normalized", !token->special, &token->normalized));
  TN_TRY(tn_json_read_flag(place, "lstrip", false, &token->lstrip));
  TN_TRY(tn_json_read_flag(place, "rstrip", false, &token->rstrip));
  return tn_json_read_flag(place, "single_word", false, &token->single_word);
}

/* A token that the model has keeps its id there. */
static tn_status added_set_piece(tn_tokenizer *t, const tn_json_place *place, tn_added_token *token) {
  int32_t known = tn_text_map_get(&t->by_text, token->text, token->bytes);
  if (known >= 0) token->id = known;
  tn_piece *piece = &t->pieces[token->id];
  if (known < 0 && piece->text != NULL)
    return tn_json_fail(place, TN_EINVAL, "\"%.60s\" and \"%.60s\" have the same id, %d", token->text,
                        piece->text, token->id);
  if (known < 0) *piece = (tn_piece){.text = token->text, .bytes = (uint32_t)token->bytes};
  piece->special = token->special;
  tn_text_map_set(&t->by_added, token->text, token->bytes, token->id);
  return TN_OK;
}

static tn_status added_read_token(tn_tokenizer *t, const tn_json_place *place, tn_added_token *token) {
  const char *text;
  int64_t id;
  TN_TRY(tn_json_read_text(place, "content", NULL, &text, &token->bytes));
  TN_TRY(tn_json_read_int(place, "id", 0, t->n - 1, -1, &id));
  TN_TRY(added_read_flags(place, token));
  if (id < 0) return tn_json_fail(place, TN_EINVAL, "has no id");
  if (token->bytes > UINT16_MAX) return tn_json_fail(place, TN_EINVAL, "has %zu bytes", token->bytes);
  if (token->single_word) TN_TRY(tn_unicode_need(&t->env, place->path));
  token->id = (int32_t)id;
  token->text = tn_json_keep(t, text, token->bytes);
  if (token->text == NULL) return TN_ENOMEM;
  return added_set_piece(t, place, token);
}

tn_status tn_added_read(tn_tokenizer *t, const tn_json_place *place) {
  size_t n = tn_json_absent(place) ? 0 : json_array_size(place->node);
  if (!tn_json_absent(place) && !json_is_array(place->node))
    return tn_json_fail(place, TN_EINVAL, "is no list");
  if (n > MOST_ADDED)
    return tn_json_fail(place, TN_EINVAL, "has %zu tokens, expected at most %d", n, MOST_ADDED);
  t->added = tn_arena_alloc(&t->arena, (n + 1) * sizeof *t->added);
  if (t->added == NULL) return TN_ENOMEM;
  TN_TRY(tn_text_map_open(&t->arena, n, &t->by_added));
  for (size_t i = 0; i < n; i++) {
    tn_json_place element = tn_json_element(place, i);
    TN_TRY(added_read_token(t, &element, &t->added[t->n_added]));
    t->n_added += t->added[t->n_added].bytes > 0;
  }
  return TN_OK;
}

/* ---- the tries ---- */

static bool added_is_in(const tn_added_token *token, bool normalized) {
  return token->normalized == normalized;
}

static void added_insert(tn_added_set *set, const tn_added_token *token, int32_t number) {
  uint32_t node = 0;
  for (size_t i = 0; i < token->bytes; i++) {
    unsigned char byte = (unsigned char)token->text[i];
    tn_pair_slot *slot = tn_pair_map_find(&set->edges, node, byte);
    if (slot->key == 0)
      *slot = (tn_pair_slot){.key = tn_pair_key(node, byte), .first = (uint32_t)++set->nodes};
    node = slot->first;
    if (i + 1 == token->bytes && slot->second == 0) slot->second = (uint32_t)number + 1;
  }
  set->starts[(unsigned char)token->text[0]] = true;
  set->n++;
}

static tn_status added_fill(tn_tokenizer *t, bool normalized, tn_added_set *set) {
  size_t bytes = 0;
  for (int32_t i = 0; i < t->n_added; i++)
    if (added_is_in(&t->added[i], normalized)) bytes += t->added[i].bytes;
  TN_TRY(tn_pair_map_open(&t->arena, bytes, &set->edges));
  for (int32_t i = 0; i < t->n_added; i++)
    if (added_is_in(&t->added[i], normalized) && t->added[i].bytes > 0) added_insert(set, &t->added[i], i);
  return TN_OK;
}

tn_status tn_added_finish(tn_tokenizer *t, tn_encoder *e) {
  for (int32_t i = 0; i < t->n_added; i++) {
    tn_added_token *token = &t->added[i];
    if (!token->normalized || t->normalizers.n == 0) continue;
    TN_TRY(tn_encoder_normalize(e, &token->text, &token->bytes));
    token->text = tn_json_keep(t, token->text, token->bytes);
    if (token->text == NULL) return TN_ENOMEM;
  }
  TN_TRY(added_fill(t, false, &t->before));
  return added_fill(t, true, &t->behind);
}

/* ---- finding ---- */

/* The number and 1 of the longest token that the text begins with. */
static uint32_t added_longest(const tn_added_set *set, const char *text, size_t bytes) {
  uint32_t node = 0, longest = 0;
  for (size_t i = 0; i < bytes; i++) {
    const tn_pair_slot *slot = tn_pair_map_find(&set->edges, node, (unsigned char)text[i]);
    if (slot->key == 0) break;
    if (slot->second != 0) longest = slot->second;
    node = slot->first;
  }
  return longest;
}

const tn_added_token *tn_added_find(const tn_tokenizer *t, const tn_added_set *set, const char *text,
                                    size_t bytes, size_t *start) {
  if (set->n == 0) return NULL;
  for (size_t at = *start; at < bytes; at++) {
    if (!set->starts[(unsigned char)text[at]]) continue;
    uint32_t number = added_longest(set, text + at, bytes - at);
    if (number == 0) continue;
    *start = at;
    return &t->added[number - 1];
  }
  return NULL;
}
