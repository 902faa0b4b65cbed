/* core/tokenizer/models/vocabulary.c: the tokens of a model and their ids. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

/* Room for ids below n, of which `tokens` have texts. */
tn_status tn_model_reserve(tn_tokenizer *t, int64_t n, size_t tokens) {
  t->pieces = tn_arena_alloc(&t->arena, tn_size_mul((size_t)n + 1, sizeof *t->pieces));
  t->n = (int32_t)n;
  return t->pieces != NULL ? tn_text_map_open(&t->arena, tokens, &t->by_text) : TN_ENOMEM;
}

tn_status tn_model_set(tn_tokenizer *t, const tn_json_place *place, int64_t id, const char *text,
                       size_t bytes) {
  if (bytes > TN_MODEL_MOST_TOKEN)
    return tn_json_fail(place, TN_EINVAL, "token %lld has %zu bytes, expected at most %d", (long long)id,
                        bytes, (int)TN_MODEL_MOST_TOKEN);
  if (t->pieces[id].text != NULL)
    return tn_json_fail(place, TN_EINVAL, "\"%.60s\" and \"%.60s\" have the same id, %lld",
                        t->pieces[id].text, text, (long long)id);
  const char *kept = tn_json_keep(t, text, bytes);
  if (kept == NULL) return TN_ENOMEM;
  t->pieces[id] = (tn_piece){.text = kept, .bytes = (uint32_t)bytes};
  tn_text_map_set(&t->by_text, kept, bytes, (int32_t)id);
  return TN_OK;
}

/* The largest id of the vocabulary and the added tokens, and 1. */
tn_status tn_model_count(const tn_json_place *root, const tn_json_place *vocabulary, int64_t *n) {
  const char *token;
  json_t *value;
  *n = 0;
  json_object_foreach((json_t *)(uintptr_t)vocabulary->node, token, value) {
    int64_t id = json_integer_value(value);
    if (!json_is_integer(value) || id < 0 || id >= TN_MODEL_MOST_IDS)
      return tn_json_fail(vocabulary, TN_EINVAL, "\"%.60s\" has no id, expected 0 .. %d", token,
                          (int)TN_MODEL_MOST_IDS - 1);
    if (id >= *n) *n = id + 1;
  }
  tn_json_place added = tn_json_member(root, "added_tokens");
  for (size_t i = 0; i < json_array_size(added.node); i++) {
    tn_json_place element = tn_json_element(&added, i);
    int64_t id;
    TN_TRY(tn_json_read_int(&element, "id", 0, TN_MODEL_MOST_IDS - 1, -1, &id));
    if (id >= *n) *n = id + 1;
  }
  return TN_OK;
}

/* A list; the id is the place. */
tn_status tn_model_reserve_list(tn_tokenizer *t, const tn_json_place *root, const tn_json_place *list) {
  tn_json_place none = {.t = t};
  int64_t n;
  TN_TRY(tn_model_count(root, &none, &n));
  if (!json_is_array(list->node) || json_array_size(list->node) > TN_MODEL_MOST_IDS)
    return tn_json_fail(list, TN_EINVAL, "is no list of at most %d tokens", (int)TN_MODEL_MOST_IDS);
  if ((int64_t)json_array_size(list->node) > n) n = (int64_t)json_array_size(list->node);
  return tn_model_reserve(t, n, json_array_size(list->node));
}

bool tn_model_has_inner_space(const char *text, size_t bytes) {
  static const char space[] = "\xe2\x96\x81";
  for (size_t i = 1; i + 3 <= bytes; i++)
    if (memcmp(text + i, space, 3) == 0 && (i < 3 || memcmp(text + i - 3, space, 3) != 0)) return true;
  return false;
}
