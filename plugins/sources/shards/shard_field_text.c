/* plugins/sources/shards/shard_field_text.c: reads lists of fields, and finds the field of a member. */
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

static tn_status shard_text_fail(const void *handle, const char *option, const char *text, size_t n) {
  return tn_fail(
      handle, TN_EINVAL, option,
      "%s: '%.*s', expected NAME: ENDING|ENDING, such as image: jpg|png, label: cls, x: npy, text: txt, "
      "text: tokens(txt), size: json(KEY) or kind: class(json(KEY))",
      option, (int)n, text);
}

static int32_t shard_text_is_ending(char c) { return isalnum((unsigned char)c) || strchr("._-", c) != NULL; }

/* Takes "WORD(" from the front, and ")" from the back. */
static int32_t shard_text_unwrap(const char *word, const char **text, size_t *n) {
  size_t length = strlen(word);
  if (*n < length + 2 || memcmp(*text, word, length) != 0 || (*text)[length] != '(' || (*text)[*n - 1] != ')')
    return 0;
  *text += length + 1;
  *n -= length + 2;
  while (*n > 0 && (*text)[*n - 1] == ' ') --*n;
  for (; *n > 0 && **text == ' '; --*n) ++*text;
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
static tn_status shard_text_endings(const void *handle, const char *option, const char *text, size_t n,
                                    shard_field *f) {
  size_t used = 0;
  f->kind = -1;
  for (size_t at = 0; at <= n;) {
    size_t end = at;
    while (end < n && shard_text_is_ending(text[end])) end++;
    int32_t kind = shard_text_kind(text + at, end - at);
    if (end == at || (end < n && text[end] != '|') || used + (end - at) + 2 > SHARD_ENDINGS)
      return shard_text_fail(handle, option, text, n);
    if (kind < 0 || (f->kind >= 0 && f->kind != kind))
      return tn_fail(handle, TN_EINVAL, option,
                     "%s: no field is read from members '.%.*s'%s, expected a picture (jpg, png, webp, tiff, "
                     "avif), cls, json, npy or txt",
                     option, (int)(end - at), text + at, kind < 0 ? "" : " and those before it");
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

/* Behind the colon: ENDINGS, json(KEY), or one of these in class(), tokens(), text() or list(). */
static tn_status shard_text_value(const void *handle, const char *option, const char *text, size_t n,
                                  shard_field *f) {
  const char *word = NULL;
  int32_t kind = -1;
  f->is_list = shard_text_unwrap("list", &text, &n);
  for (size_t i = 0; word == NULL && i < sizeof shard_readings / sizeof *shard_readings; i++) {
    if (!shard_text_unwrap(shard_readings[i].word, &text, &n)) continue;
    word = shard_readings[i].word;
    kind = shard_readings[i].kind;
  }
  if (shard_text_unwrap("json", &text, &n)) {
    if (n == 0 || n >= SHARD_ENDINGS) return shard_text_fail(handle, option, text, n);
    snprintf(f->key, SHARD_ENDINGS, "%.*s", (int)n, text);
    snprintf(f->endings, SHARD_ENDINGS, "json");
    f->kind = SHARD_NUMBERS;
  } else {
    TN_TRY(shard_text_endings(handle, option, text, n, f));
  }
  if (word != NULL && f->key[0] == '\0' && f->kind != SHARD_TEXT)
    return tn_fail(handle, TN_EINVAL, option, "%s: %s(%s), expected %s(json(KEY)) or %s(txt)", option, word,
                   f->endings, word, word);
  if (word != NULL) f->kind = kind;
  if (f->is_list && f->kind != SHARD_NUMBERS && f->kind != SHARD_ARRAY)
    return tn_fail(handle, TN_EINVAL, option, "%s: list(%s), expected list(json(KEY)) or list(npy)", option,
                   f->endings);
  return TN_OK;
}

static tn_status shard_text_check_name(const void *handle, const char *option, const shard_fields *fields) {
  const shard_field *f = &fields->v[fields->n];
  for (int32_t i = 0; i < fields->n; i++)
    if (strcmp(fields->v[i].name, f->name) == 0)
      return tn_fail(handle, TN_EINVAL, option, "%s: there are two fields '%s'; rename one", option, f->name);
  return TN_OK;
}

/* One entry, without blanks around it. */
static tn_status shard_text_add(const void *handle, const char *option, const char *text, size_t n,
                                int32_t role, shard_fields *fields) {
  if (fields->n == SHARD_FIELDS)
    return tn_fail(handle, TN_EINVAL, option, "%s: more than %d fields, expected at most so many", option,
                   SHARD_FIELDS);
  shard_field *f = &fields->v[fields->n];
  const char *colon = memchr(text, ':', n);
  size_t name = 0;
  *f = (shard_field){.role = role};
  while (name < n && (isalnum((unsigned char)text[name]) || text[name] == '_')) name++;
  if (colon == NULL || name == 0 || name >= SHARD_NAME || text + name != colon)
    return shard_text_fail(handle, option, text, n);
  snprintf(f->name, SHARD_NAME, "%.*s", (int)name, text);
  TN_TRY(shard_text_check_name(handle, option, fields));
  const char *value = colon + 1, *end = text + n;
  while (value < end && *value == ' ') value++;
  TN_TRY(shard_text_value(handle, option, value, (size_t)(end - value), f));
  fields->n++;
  return TN_OK;
}

tn_status shard_fields_add(const void *handle, const char *option, const char *list, int32_t role,
                           shard_fields *fields) {
  while (*list != '\0') {
    size_t n = strcspn(list, ",\n"), from = strspn(list, " \t"), to = n;
    while (to > from && isspace((unsigned char)list[to - 1])) to--;
    if (to > from) TN_TRY(shard_text_add(handle, option, list + from, to - from, role, fields));
    list += n + (list[n] != '\0');
  }
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
