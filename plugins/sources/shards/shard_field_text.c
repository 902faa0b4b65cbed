/* plugins/sources/shards/shard_field_text.c: reads lists of fields, and finds the field of a member. */
#include "plugins/sources/field_list.h"
#include "plugins/sources/shards/shard_field.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tenon/file_names.h"

/* The content that the last part of an ending stands for, beside those of pictures. */
static const struct {
  const char *ending;
  int32_t kind;
} shard_kinds[] = {
    {".cls", SHARD_CLASS}, {".json", SHARD_NUMBERS}, {".npy", SHARD_ARRAY}, {".txt", SHARD_TEXT}};
enum { N_SHARD_KINDS = sizeof shard_kinds / sizeof *shard_kinds };

static const char shard_text_form[] =
    "NAME: ENDING|ENDING, such as image: jpg|png, label: cls, x: npy, text: txt, text: tokens(txt), size: "
    "json(KEY) or kind: class(json(KEY))";

static int32_t shard_text_is_ending(char c) { return isalnum((unsigned char)c) || strchr("._-", c) != NULL; }

/* Takes "WORD(" from the front, and ")" from the back. */
static int32_t shard_text_unwrap(const char *name, field_word *word) {
  size_t length = strlen(name);
  if (word->n < length + 2 || memcmp(word->text, name, length) != 0 || word->text[length] != '(' ||
      word->text[word->n - 1] != ')')
    return 0;
  *word = field_word_trim(word->text + length + 1, word->n - length - 2);
  return 1;
}

/* The kind of an ending of n characters; -1: an unknown one. */
static int32_t shard_text_kind(const char *ending, size_t n) {
  char name[SHARD_ENDINGS];
  snprintf(name, sizeof name, ".%.*s", (int)n, ending);
  if (tn_name_is_picture(name)) return SHARD_IMAGE;
  for (int i = 0; i < N_SHARD_KINDS; i++)
    if (strcasecmp(shard_kinds[i].ending, strrchr(name, '.')) == 0) return shard_kinds[i].kind;
  return -1;
}

/* "jpg|jpeg|png": all of one kind. */
static tn_status shard_text_endings(const field_list *list, const field_entry *entry, field_word word,
                                    shard_field *f) {
  const char *text = word.text;
  size_t used = 0, n = word.n;
  f->kind = -1;
  for (size_t at = 0; at <= n;) {
    size_t end = at;
    while (end < n && shard_text_is_ending(text[end])) end++;
    int32_t kind = shard_text_kind(text + at, end - at);
    if (end == at || (end < n && text[end] != '|') || used + (end - at) + 2 > SHARD_ENDINGS)
      return field_list_refuse(list, entry);
    if (kind < 0 || (f->kind >= 0 && f->kind != kind))
      return tn_fail(list->handle, TN_EINVAL, list->option,
                     "%s: no field is read from members '.%.*s'%s, expected a picture (jpg, png, webp, tiff, "
                     "avif), cls, json, npy or txt",
                     list->option, (int)(end - at), text + at, kind < 0 ? "" : " and those before it");
    f->kind = kind;
    used += (size_t)snprintf(f->endings + used, SHARD_ENDINGS - used, "%s%.*s", used > 0 ? "|" : "",
                             (int)(end - at), text + at);
    at = end + 1;
  }
  return TN_OK;
}

/* The word in front of the brackets: as what a number or a text is read. */
static const struct {
  const char *word;
  int32_t kind;
} shard_readings[] = {{"class", SHARD_CLASS}, {"tokens", SHARD_TOKENS}, {"text", SHARD_TEXT}};

/* ENDINGS, or json(KEY). */
static tn_status shard_text_member(const field_list *list, const field_entry *entry, field_word word,
                                   shard_field *f) {
  if (!shard_text_unwrap("json", &word)) return shard_text_endings(list, entry, word, f);
  if (word.n == 0 || word.n >= SHARD_ENDINGS) return field_list_refuse(list, entry);
  snprintf(f->key, SHARD_ENDINGS, "%.*s", (int)word.n, word.text);
  snprintf(f->endings, SHARD_ENDINGS, "json");
  f->kind = SHARD_NUMBERS;
  return TN_OK;
}

/* Behind the colon: a member, or one in class(), tokens(), text() or list(). */
static tn_status shard_text_value(const field_list *list, const field_entry *entry, shard_field *f) {
  const char *reading = NULL, *option = list->option;
  field_word word = entry->value;
  int32_t kind = -1;
  f->is_list = shard_text_unwrap("list", &word);
  for (size_t i = 0; reading == NULL && i < sizeof shard_readings / sizeof *shard_readings; i++) {
    if (!shard_text_unwrap(shard_readings[i].word, &word)) continue;
    reading = shard_readings[i].word;
    kind = shard_readings[i].kind;
  }
  TN_TRY(shard_text_member(list, entry, word, f));
  if (reading != NULL && f->key[0] == '\0' && f->kind != SHARD_TEXT)
    return tn_fail(list->handle, TN_EINVAL, option, "%s: %s(%s), expected %s(json(KEY)) or %s(txt)", option,
                   reading, f->endings, reading, reading);
  if (reading != NULL) f->kind = kind;
  if (f->is_list && f->kind != SHARD_NUMBERS && f->kind != SHARD_ARRAY)
    return tn_fail(list->handle, TN_EINVAL, option, "%s: list(%s), expected list(json(KEY)) or list(npy)",
                   option, f->endings);
  return TN_OK;
}

static tn_status shard_text_add(const field_list *list, const field_entry *entry, int32_t role,
                                shard_fields *fields) {
  if (fields->n == SHARD_FIELDS) return field_list_refuse_more(list, SHARD_FIELDS);
  shard_field *f = &fields->v[fields->n];
  *f = (shard_field){.role = role};
  TN_TRY(field_list_name(list, entry, f->name, sizeof f->name));
  for (int32_t i = 0; i < fields->n; i++)
    if (strcmp(fields->v[i].name, f->name) == 0) return field_list_refuse_twice(list, f->name);
  TN_TRY(shard_text_value(list, entry, f));
  fields->n++;
  return TN_OK;
}

tn_status shard_fields_add(const void *handle, const char *option, const char *text, int32_t role,
                           shard_fields *fields) {
  field_list list = field_list_of(handle, option, shard_text_form, text);
  field_entry entry;
  while (field_list_next(&list, &entry)) TN_TRY(shard_text_add(&list, &entry, role, fields));
  return TN_OK;
}

int32_t shard_field_takes(const shard_field *f, const char *ending) {
  size_t n = strlen(ending);
  for (const char *at = f->endings; *at != '\0';) {
    size_t length = strcspn(at, "|");
    if (length == n && strncasecmp(at, ending, n) == 0) return 1;
    at += length + (at[length] != '\0');
  }
  return 0;
}

int32_t shard_fields_first_class(const shard_fields *fields) {
  for (int32_t i = 0; i < fields->n; i++)
    if (fields->v[i].kind == SHARD_CLASS) return i;
  return -1;
}
