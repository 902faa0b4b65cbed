/* core/tokenizer/file/json.c: reading of tokenizer.json, with the place of mistakes. */
#include <stdio.h>
#include <string.h>

#include "core/tokenizer/tokenizer.h"

tn_json_place tn_json_root(const tn_tokenizer *t, const json_t *node) {
  return (tn_json_place){.t = t, .node = node};
}

tn_json_place tn_json_member(const tn_json_place *place, const char *name) {
  tn_json_place member = {.t = place->t, .node = json_object_get(place->node, name)};
  snprintf(member.path, sizeof member.path, "%.90s%s%.28s", place->path, place->path[0] != '\0' ? "." : "",
           name);
  return member;
}

tn_json_place tn_json_element(const tn_json_place *place, size_t index) {
  tn_json_place element = {.t = place->t, .node = json_array_get(place->node, index)};
  snprintf(element.path, sizeof element.path, "%.90s[%zu]", place->path, index);
  return element;
}

bool tn_json_absent(const tn_json_place *place) { return place->node == NULL || json_is_null(place->node); }

tn_status tn_json_fail(const tn_json_place *place, tn_status code, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tn_failf(&place->t->env, code, "%s: %s: %s", place->t->name,
                  place->path[0] != '\0' ? place->path : "the file", text);
}

static const char *json_kind(const json_t *node) {
  static const char *const names[] = {
      [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
      [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
      [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
  return node == NULL ? "absent" : names[json_typeof(node)];
}

tn_status tn_json_read_flag(const tn_json_place *place, const char *name, bool otherwise, bool *value) {
  tn_json_place member = tn_json_member(place, name);
  *value = tn_json_absent(&member) ? otherwise : json_is_true(member.node);
  if (tn_json_absent(&member) || json_is_boolean(member.node)) return TN_OK;
  return tn_json_fail(&member, TN_EINVAL, "is %s, expected true or false", json_kind(member.node));
}

tn_status tn_json_read_int(const tn_json_place *place, const char *name, int64_t least, int64_t most,
                           int64_t otherwise, int64_t *value) {
  tn_json_place member = tn_json_member(place, name);
  *value = otherwise;
  if (tn_json_absent(&member)) return TN_OK;
  *value = json_integer_value(member.node);
  if (!json_is_integer(member.node))
    return tn_json_fail(&member, TN_EINVAL, "is %s, expected an integer", json_kind(member.node));
  if (*value < least || *value > most)
    return tn_json_fail(&member, TN_EINVAL, "is %lld, expected %lld .. %lld", (long long)*value,
                        (long long)least, (long long)most);
  return TN_OK;
}

tn_status tn_json_read_text(const tn_json_place *place, const char *name, const char *otherwise,
                            const char **value, size_t *bytes) {
  tn_json_place member = tn_json_member(place, name);
  bool taken = tn_json_absent(&member) && otherwise != NULL;
  if (!taken && !json_is_string(member.node))
    return tn_json_fail(&member, TN_EINVAL, "is %s, expected a text", json_kind(member.node));
  *value = taken ? otherwise : json_string_value(member.node);
  *bytes = taken ? strlen(otherwise) : json_string_length(member.node);
  return TN_OK;
}

tn_status tn_json_read_character(const tn_json_place *place, const char *name, const char *otherwise,
                                 const char **value, size_t *bytes) {
  TN_TRY(tn_json_read_text(place, name, otherwise, value, bytes));
  if (*bytes > 0 && tn_text_character_bytes(*value, *bytes) == *bytes) return TN_OK;
  tn_json_place member = tn_json_member(place, name);
  return tn_json_fail(&member, TN_EINVAL, "is \"%.40s\", expected one character", *value);
}

tn_status tn_json_read_word(const tn_json_place *place, const char *name, const char *const *words,
                            int32_t n_words, int32_t otherwise, int32_t *number) {
  tn_json_place member = tn_json_member(place, name);
  *number = otherwise;
  if (tn_json_absent(&member) && otherwise >= 0) return TN_OK;
  const char *word;
  size_t bytes;
  TN_TRY(tn_json_read_text(place, name, NULL, &word, &bytes));
  for (*number = 0; *number < n_words; ++*number)
    if (strcmp(words[*number], word) == 0) return TN_OK;
  return tn_json_fail(&member, TN_EUNSUPPORTED, "\"%.60s\" is not supported", word);
}

tn_status tn_json_read_sequence(tn_tokenizer *t, const tn_json_place *place, const char *name,
                                tn_json_reader *read, int32_t depth) {
  tn_json_place list = tn_json_member(place, name);
  if (depth > 4) return tn_json_fail(place, TN_EUNSUPPORTED, "sequences within sequences");
  for (size_t i = 0; i < json_array_size(list.node); i++) {
    tn_json_place element = tn_json_element(&list, i);
    TN_TRY(read(t, &element, depth + 1));
  }
  return TN_OK;
}

const char *tn_json_keep(tn_tokenizer *t, const char *text, size_t bytes) {
  char *kept = tn_arena_alloc(&t->arena, bytes + 1);
  if (kept != NULL && bytes > 0) memcpy(kept, text, bytes);
  return kept;
}

tn_step *tn_steps_add(tn_steps *steps, const tn_json_place *place) {
  if (steps->n < TN_TOKENIZER_STEPS) return &steps->v[steps->n++];
  tn_json_fail(place, TN_EUNSUPPORTED, "more than %d steps", TN_TOKENIZER_STEPS);
  return NULL;
}

static tn_status json_open_pattern(tn_tokenizer *t, const tn_json_place *place, const char *text,
                                   size_t bytes, tn_step *step) {
  char where[512];
  snprintf(where, sizeof where, "%.300s: %s", t->name, place->path);
  t->patterns = true;
  return tn_pattern_open(&t->env, where, text, bytes, &step->pattern);
}

tn_status tn_step_read_pattern(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  tn_json_place pattern = tn_json_member(place, "pattern");
  tn_json_place regex = tn_json_member(&pattern, "Regex");
  const char *text;
  size_t bytes;
  if (!tn_json_absent(&regex)) {
    TN_TRY(tn_json_read_text(&pattern, "Regex", NULL, &text, &bytes));
    return json_open_pattern(t, &regex, text, bytes, step);
  }
  TN_TRY(tn_json_read_text(&pattern, "String", NULL, &text, &bytes));
  if (bytes == 0) return tn_json_fail(&pattern, TN_EINVAL, "the text that is sought is empty");
  step->text = tn_json_keep(t, text, bytes);
  step->text_bytes = bytes;
  return step->text != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_step_gpt2_pattern(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  static const char pattern[] =
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
  return json_open_pattern(t, place, pattern, sizeof pattern - 1, step);
}
