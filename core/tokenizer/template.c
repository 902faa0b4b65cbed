/* core/tokenizer/template.c: the post-processors of tokenizer.json, as the ids in front of a text and behind
 * it.
 */
#include "core/tokenizer/tokenizer.h"

enum { MOST_IDS = 64 };

typedef struct template_ids {
  int32_t before[MOST_IDS], behind[MOST_IDS];
  int32_t n_before, n_behind;
} template_ids;

/* Outer ids come later, so they go in front of `before` and behind `behind`. */
static tn_status template_add(const tn_json_place *place, int32_t *ids, int32_t *n, int32_t at, int64_t id) {
  if (id < 0 || id >= place->t->n || place->t->pieces[id].text == NULL)
    return tn_json_fail(place, TN_EINVAL, "no token has the id %lld", (long long)id);
  if (*n == MOST_IDS) return tn_json_fail(place, TN_EUNSUPPORTED, "more than %d special tokens", MOST_IDS);
  for (int32_t i = (*n)++; i > at; i--) ids[i] = ids[i - 1];
  ids[at] = (int32_t)id;
  return TN_OK;
}

/* ["[SEP]", 102] */
static tn_status template_read_pair(const tn_json_place *place, const char *name, int64_t *id) {
  tn_json_place member = tn_json_member(place, name);
  const json_t *number = json_array_get(member.node, 1);
  *id = json_integer_value(number);
  return json_is_integer(number) ? TN_OK : tn_json_fail(&member, TN_EINVAL, "is no token with its id");
}

static tn_status template_read_bert(const tn_json_place *place, template_ids *ids) {
  int64_t cls, sep;
  TN_TRY(template_read_pair(place, "cls", &cls));
  TN_TRY(template_read_pair(place, "sep", &sep));
  TN_TRY(template_add(place, ids->before, &ids->n_before, 0, cls));
  return template_add(place, ids->behind, &ids->n_behind, ids->n_behind, sep);
}

/* The ids of a special token of a template, which may be several. */
static tn_status template_add_special(const tn_json_place *place, const tn_json_place *element, bool behind,
                                      int32_t *before, template_ids *ids) {
  const char *name;
  size_t bytes;
  tn_json_place special = tn_json_member(element, "SpecialToken");
  TN_TRY(tn_json_read_text(&special, "id", NULL, &name, &bytes));
  tn_json_place all = tn_json_member(place, "special_tokens"), token = tn_json_member(&all, name);
  const json_t *list = json_object_get(token.node, "ids");
  if (json_array_size(list) == 0) return tn_json_fail(&token, TN_EINVAL, "has no ids");
  for (size_t i = 0; i < json_array_size(list); i++) {
    int64_t id = json_integer_value(json_array_get(list, i));
    if (behind)
      TN_TRY(template_add(&token, ids->behind, &ids->n_behind, ids->n_behind, id));
    else
      TN_TRY(template_add(&token, ids->before, &ids->n_before, (*before)++, id));
  }
  return TN_OK;
}

static tn_status template_read_single(const tn_json_place *place, template_ids *ids) {
  tn_json_place single = tn_json_member(place, "single");
  int32_t sequences = 0, before = 0;
  for (size_t i = 0; i < json_array_size(single.node); i++) {
    tn_json_place element = tn_json_element(&single, i);
    if (json_object_get(element.node, "Sequence") != NULL)
      sequences++;
    else
      TN_TRY(template_add_special(place, &element, sequences > 0, &before, ids));
  }
  return sequences == 1 ? TN_OK : tn_json_fail(&single, TN_EUNSUPPORTED, "has the text %d times", sequences);
}

static tn_status template_read(const tn_json_place *place, int32_t depth, template_ids *ids);

static tn_status template_read_sequence(const tn_json_place *place, int32_t depth, template_ids *ids) {
  tn_json_place list = tn_json_member(place, "processors");
  if (depth > 4) return tn_json_fail(place, TN_EUNSUPPORTED, "sequences within sequences");
  for (size_t i = 0; i < json_array_size(list.node); i++) {
    tn_json_place element = tn_json_element(&list, i);
    TN_TRY(template_read(&element, depth + 1, ids));
  }
  return TN_OK;
}

static tn_status template_read(const tn_json_place *place, int32_t depth, template_ids *ids) {
  static const char *const names[] = {"ByteLevel", "TemplateProcessing", "BertProcessing",
                                      "RobertaProcessing", "Sequence"};
  int32_t number;
  TN_TRY(tn_json_read_word(place, "type", names, 5, -1, &number));
  switch (number) {
  case 0: return TN_OK;
  case 1: return template_read_single(place, ids);
  case 4: return template_read_sequence(place, depth, ids);
  default: return template_read_bert(place, ids);
  }
}

tn_status tn_template_read(tn_tokenizer *t, const tn_json_place *place) {
  template_ids ids = {.n_before = 0};
  if (!tn_json_absent(place)) TN_TRY(template_read(place, 0, &ids));
  t->before_ids = tn_arena_copy(&t->arena, ids.before, sizeof ids.before);
  t->behind_ids = tn_arena_copy(&t->arena, ids.behind, sizeof ids.behind);
  t->n_before = ids.n_before;
  t->n_behind = ids.n_behind;
  return t->before_ids != NULL && t->behind_ids != NULL ? TN_OK : TN_ENOMEM;
}
