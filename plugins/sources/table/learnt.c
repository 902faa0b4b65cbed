/* plugins/sources/table/learnt.c: what fields have learnt, as JSON: for each field its kind, its columns, and
 * lists. */
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/table/table.h"

/* ---- writing ---- */

static json_t *learnt_numbers(const double *v, int32_t n) {
  json_t *list = json_array();
  for (int32_t i = 0; i < n; i++) json_array_append_new(list, json_real(v[i]));
  return list;
}

static json_t *learnt_texts(const char *const *v, int32_t n) {
  json_t *list = json_array();
  for (int32_t i = 0; i < n; i++) json_array_append_new(list, json_string(v[i]));
  return list;
}

static json_t *learnt_words(const table_vocabulary *v) {
  json_t *list = json_array();
  for (int32_t i = 0; i < v->count; i++)
    json_array_append_new(list, json_stringn(v->words[i].text, v->words[i].n));
  return list;
}

static json_t *learnt_field(const table *t, const table_field *f) {
  json_t *one = json_pack("{s:s, s:o}", "kind", f->kind->name, "columns", learnt_texts(f->names, f->n));
  if (f->fill != NULL) json_object_set_new(one, "fill", learnt_numbers(f->fill, f->n));
  if (f->mean != NULL) json_object_set_new(one, "mean", learnt_numbers(f->mean, f->n));
  if (f->deviation != NULL) json_object_set_new(one, "deviation", learnt_numbers(f->deviation, f->n));
  if (f->words.count > 0) json_object_set_new(one, "words", learnt_words(&f->words));
  if (f->tokenizer != NULL)
    json_object_set_new(one, "tokenizer", json_string(tn_tokenizer_json(&t->env, f->tokenizer)));
  return one;
}

tn_status table_learnt_write(table *t) {
  json_t *fields = json_object();
  for (int32_t i = 0; i < t->n_fields; i++)
    if (t->fields[i].kind->learn != NULL)
      json_object_set_new(fields, t->fields[i].name, learnt_field(t, &t->fields[i]));
  json_t *all = json_pack("{s:o}", "fields", fields);
  char *text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
  json_decref(all);
  if (text != NULL) t->learnt = table_memory_copy(&t->memory, text, strlen(text));
  free(text);
  return t->learnt != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- reading ---- */

static tn_status learnt_fail(const table *t, const table_field *f, const char *what) {
  return tn_fail(
      &t->env, TN_EINVAL, NULL,
      "field '%s': the weights were trained with other data: %s; use the configuration of their run, or "
      "train anew",
      f->name, what);
}

static tn_status learnt_take_columns(table *t, table_field *f, const json_t *list) {
  int32_t n = (int32_t)json_array_size(list);
  const char **names = table_memory_take(&t->memory, ((size_t)n + 1) * sizeof(*names));
  if (names == NULL) return TN_ENOMEM;
  if (n == 0 || (!f->rest && n != f->n)) return learnt_fail(t, f, "the number of columns differs");
  for (int32_t i = 0; i < n; i++) {
    const json_t *name = json_array_get(list, (size_t)i);
    if (!json_is_string(name)) return learnt_fail(t, f, "a name of a column is no text");
    if (!f->rest && strcmp(json_string_value(name), f->names[i]) != 0)
      return tn_fail(
          &t->env, TN_EINVAL, NULL,
          "field '%s': column %d is '%s', and the weights were trained with '%s'; use the configuration of "
          "their run, or train anew",
          f->name, i + 1, f->names[i], json_string_value(name));
    names[i] = table_memory_copy(&t->memory, json_string_value(name), json_string_length(name));
    if (names[i] == NULL) return TN_ENOMEM;
  }
  f->names = names;
  f->n = n;
  return TN_OK;
}

/* A list of a number for each column; it is there where the options ask for it, and only then. */
static tn_status learnt_take_numbers(table *t, const table_field *f, const json_t *one, const char *key,
                                     bool wanted, double **v) {
  const json_t *list = json_object_get(one, key);
  if (!wanted && list == NULL) return TN_OK;
  if (!wanted || (int32_t)json_array_size(list) != f->n)
    return learnt_fail(t, f, "missing or standardize has changed");
  *v = table_memory_take(&t->memory, ((size_t)f->n + 1) * sizeof(**v));
  if (*v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < f->n; i++) {
    const json_t *number = json_array_get(list, (size_t)i);
    if (!json_is_number(number)) return learnt_fail(t, f, "a mean, deviation or fill is no number");
    (*v)[i] = json_number_value(number);
  }
  return TN_OK;
}

static tn_status learnt_take_words(table *t, table_field *f, const json_t *list) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *word = json_array_get(list, i);
    if (!json_is_string(word)) return learnt_fail(t, f, "a word is no text");
    int32_t added =
        table_vocabulary_add(&t->memory, &f->words, json_string_value(word), json_string_length(word));
    if (added == TABLE_FAILED) return TN_ENOMEM;
  }
  bool classes = (f->kind->choices & CHOICE_CLASSES) != 0;
  return classes == (f->words.count > 0) ? TN_OK : learnt_fail(t, f, "the words are missing");
}

static tn_status learnt_take_tokenizer(table *t, table_field *f, const json_t *json) {
  if ((f->kind->choices & CHOICE_TOKENIZER) == 0) return TN_OK;
  if (!json_is_string(json)) return learnt_fail(t, f, "the tokenizer is missing");
  return tn_tokenizer_open_text(&t->env, "the tokenizer of the weights", json_string_value(json),
                                json_string_length(json), &f->tokenizer);
}

static tn_status learnt_take_field(table *t, table_field *f, const json_t *one) {
  const char *kind = json_string_value(json_object_get(one, "kind"));
  if (kind == NULL) return learnt_fail(t, f, "they have no such field");
  if (strcmp(kind, f->kind->name) != 0) return learnt_fail(t, f, "its kind was another one");
  bool fills = (f->kind->choices & CHOICE_FILL) != 0 && f->choices.missing != MISSING_ERROR;
  TN_TRY(learnt_take_columns(t, f, json_object_get(one, "columns")));
  TN_TRY(learnt_take_numbers(t, f, one, "fill", fills, &f->fill));
  TN_TRY(learnt_take_numbers(t, f, one, "mean", f->choices.standardize != 0, &f->mean));
  TN_TRY(learnt_take_numbers(t, f, one, "deviation", f->choices.standardize != 0, &f->deviation));
  TN_TRY(learnt_take_words(t, f, json_object_get(one, "words")));
  TN_TRY(learnt_take_tokenizer(t, f, json_object_get(one, "tokenizer")));
  f->taught = true;
  return TN_OK;
}

tn_status table_learnt_read(table *t, const char *text) {
  json_error_t error;
  json_t *all = json_loads(text, 0, &error);
  const json_t *fields = json_object_get(all, "fields");
  tn_status status = TN_OK;
  if (!json_is_object(fields))
    status = tn_fail(&t->env, TN_EINVAL, NULL, "what the weights' data have taught is damaged: %s",
                     all == NULL ? error.text : "there are no fields");
  for (int32_t i = 0; i < t->n_fields && status == TN_OK; i++)
    if (t->fields[i].kind->learn != NULL)
      status = learnt_take_field(t, &t->fields[i], json_object_get(fields, t->fields[i].name));
  json_decref(all);
  return status;
}
