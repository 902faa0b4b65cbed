/* core/config/options/parse.c: conversion of an option's text to its value. */
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/file/trusted_file.h"
#include "core/config/options/option_value.h"

/* The arguments that all parsers of the table below share. Their messages lack the option's name, which
 * tn_option_parse adds. */
typedef struct option_parsing {
  const void *handle;
  tn_arena *arena;
  const char *folder;
  const tn_option *option;
} option_parsing;

static tn_status option_parse_flag(const option_parsing *p, const char *text, tn_option_value *value) {
  static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (strcasecmp(text, words[i]) == 0) {
      value->integer = (int64_t)(i % 2);
      return TN_OK;
    }
  return tn_failf(p->handle, TN_EINVAL, "'%s' is neither yes nor no", text);
}

static tn_status option_parse_int(const option_parsing *p, const char *text, tn_option_value *value) {
  if (tn_text_to_int(text, &value->integer)) return TN_OK;
  size_t digits = *text == '-' || *text == '+' ? 1 : 0;
  if (text[digits] != '\0' && text[digits + strspn(text + digits, "0123456789")] == '\0')
    return tn_failf(p->handle, TN_EINVAL, "%s does not fit into 64 bits", text);
  return tn_failf(p->handle, TN_EINVAL, "'%s' is not a whole number", text);
}

static tn_status option_parse_float(const option_parsing *p, const char *text, tn_option_value *value) {
  if (tn_text_to_float(text, &value->real)) return TN_OK;
  return tn_failf(p->handle, TN_EINVAL, "'%s' is not a number", text);
}

/* Removes double quotes, which allow a text to begin with a blank or to contain a comma. */
static tn_status option_unquote(const option_parsing *p, const char *text, char *out) {
  for (text++; *text != '"'; text++) {
    bool escaped = *text == '\\' && text[1] != '\0';
    if (escaped) text++;
    if (*text == '\0') return tn_failf(p->handle, TN_EINVAL, "the text has no closing '\"'");
    *out++ = escaped && *text == 'n' ? '\n' : *text;
  }
  *out = '\0';
  if (text[1] == '\0') return TN_OK;
  return tn_failf(p->handle, TN_EINVAL, "'%s' after the closing '\"', expected nothing", text + 1);
}

static tn_status option_parse_text(const option_parsing *p, const char *text, tn_option_value *value) {
  char *copy = tn_arena_strdup(p->arena, text);
  value->text = copy;
  if (copy == NULL) return TN_ENOMEM;
  return *text == '"' ? option_unquote(p, text, copy) : TN_OK;
}

/* The absolute path of the folder that relative paths start from; the caller releases it (tn_release). */
static tn_status option_start_folder(const option_parsing *p, char **folder) {
  char here[4096];
  const char *from = p->folder != NULL ? p->folder : ".";
  if (*from == '/') {
    *folder = tn_strdup(p->handle, from);
  } else {
    if (getcwd(here, sizeof(here)) == NULL)
      return tn_failf(p->handle, TN_EIO, "the current folder has no path that this process can tell");
    *folder = strcmp(from, ".") == 0 ? tn_strdup(p->handle, here) : tn_path_join(p->handle, here, from);
  }
  return *folder != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status option_parse_path(const option_parsing *p, const char *text, tn_option_value *value) {
  char *folder;
  TN_TRY(option_parse_text(p, text, value));
  if (*value->text == '\0' || *value->text == '/') return TN_OK; /* empty: no path */
  const char *words = p->option->range;
  if (words != NULL && tn_alternatives_find(words, value->text) >= 0) return TN_OK;
  TN_TRY(option_start_folder(p, &folder));
  char *path = tn_path_join(p->handle, folder, value->text);
  value->text = path != NULL ? tn_arena_strdup(p->arena, path) : NULL;
  tn_release(p->handle, path);
  tn_release(p->handle, folder);
  return value->text != NULL ? TN_OK : TN_ENOMEM;
}

/* Checks a folder of code. Of one that is missing, the nearest folder above it: others cannot make it there.
 */
static tn_status option_check_code(const option_parsing *p, const char *path) {
  if (tn_file_exists(path)) return tn_trusted_libraries(p->handle, path);
  char *above = tn_path_folder(p->handle, path), *real = NULL;
  if (above == NULL) return TN_ENOMEM;
  tn_status status = tn_file_exists(above) ? tn_trusted_folder(p->handle, "library", above, &real)
                                           : option_check_code(p, above);
  tn_release(p->handle, real);
  tn_release(p->handle, above);
  return status;
}

static tn_status option_add_code(const option_parsing *p, const char *base, const char *word, tn_text *list) {
  char *path = tn_path_join(p->handle, base, word);
  if (path == NULL) return TN_ENOMEM;
  tn_status status = option_check_code(p, path);
  tn_text_addf(list, "%s%s", list->n > 0 ? ":" : "", path);
  tn_release(p->handle, path);
  return status;
}

static tn_status option_parse_code(const option_parsing *p, const char *text, tn_option_value *value) {
  char *base, *rest = tn_arena_strdup(p->arena, text);
  if (rest == NULL) return TN_ENOMEM;
  TN_TRY(option_start_folder(p, &base));
  tn_text list = tn_text_new(p->handle);
  tn_status status = TN_OK;
  for (char *word; status == TN_OK && (word = strsep(&rest, ":")) != NULL;)
    if (*(word = tn_text_trim(word)) != '\0') status = option_add_code(p, base, word, &list);
  if (status == TN_OK) value->text = tn_arena_strdup(p->arena, list.n > 0 ? list.v : "");
  if (status == TN_OK && (list.failed || value->text == NULL)) status = TN_ENOMEM;
  tn_text_free(&list);
  tn_release(p->handle, base);
  return status;
}

enum { WORDS_FOR_NEAREST = 32 };

/* The position of the nearest of the words "a|b|c", or -1. */
static int32_t option_nearest_word(const char *words, const char *word) {
  char copies[WORDS_FOR_NEAREST][64];
  const char *names[WORDS_FOR_NEAREST];
  size_t n, count = 0;
  for (; count < WORDS_FOR_NEAREST; count++) {
    const char *at = tn_alternatives_at(words, (int32_t)count, &n);
    if (at == NULL) break;
    n = n < sizeof(copies[0]) ? n : sizeof(copies[0]) - 1;
    memcpy(copies[count], at, n);
    copies[count][n] = '\0';
    names[count] = copies[count];
  }
  const char *nearest = tn_text_nearest(word, names, count);
  return nearest != NULL ? tn_alternatives_find(words, nearest) : -1;
}

static tn_status option_parse_enum(const option_parsing *p, const char *text, tn_option_value *value) {
  const char *words = p->option->range;
  size_t n = 0;
  value->integer = tn_alternatives_find(words, text);
  if (value->integer >= 0) return TN_OK;
  int32_t near = option_nearest_word(words, text);
  if (near < 0) return tn_failf(p->handle, TN_EINVAL, "'%s' is not one of %s", text, words);
  const char *word = tn_alternatives_at(words, near, &n);
  return tn_failf(p->handle, TN_EINVAL, "'%s' is not one of %s, did you mean '%.*s'?", text, words, (int)n,
                  word);
}

static tn_status option_parse_size(const option_parsing *p, const char *text, tn_option_value *value) {
  return tn_parse_size(p->handle, text, &value->integer);
}

static tn_status option_parse_duration(const option_parsing *p, const char *text, tn_option_value *value) {
  return tn_parse_duration(p->handle, text, &value->real);
}

static tn_status option_parse_dtype(const option_parsing *p, const char *text, tn_option_value *value) {
  int32_t dtype;
  tn_status status = tn_parse_dtype(p->handle, text, &dtype);
  value->integer = dtype;
  return status;
}

/* Removes the brackets of a list in place: "[1, 2]" becomes "1, 2". The brackets are optional. */
static tn_status option_open_list(const option_parsing *p, char **text) {
  size_t n = strlen(*text);
  if (n == 0) return tn_failf(p->handle, TN_EINVAL, "nothing given, expected a list such as [1, 2], or []");
  if (**text != '[') return TN_OK;
  if ((*text)[n - 1] != ']') return tn_failf(p->handle, TN_EINVAL, "'%s' has no ']' at its end", *text);
  (*text)[n - 1] = '\0';
  *text = tn_text_trim(*text + 1);
  return TN_OK;
}

/* Splits off the next entry at its comma; *text becomes NULL after the last entry. */
static char *option_next_entry(char **text) {
  char *entry = *text, *comma = strchr(entry, ',');
  if (comma != NULL) *comma = '\0';
  *text = comma != NULL ? comma + 1 : NULL;
  return tn_text_trim(entry);
}

static tn_status option_read_entry(const option_parsing *p, const char *entry, bool integer, void *out) {
  if (*entry == '\0') return tn_failf(p->handle, TN_EINVAL, "the list has an empty entry");
  if (integer ? tn_text_to_int(entry, out) : tn_text_to_float(entry, out)) return TN_OK;
  return tn_failf(p->handle, TN_EINVAL, "'%s' in the list is not a %snumber", entry, integer ? "whole " : "");
}

/* Parses a list of int64_t or double entries, both of 8 bytes. */
static tn_status option_parse_list(const option_parsing *p, const char *text, bool integer, int64_t *n,
                                   void **items) {
  char *rest = tn_arena_strdup(p->arena, text);
  if (rest == NULL) return TN_ENOMEM;
  TN_TRY(option_open_list(p, &rest));
  size_t count = *rest == '\0' ? 0 : 1;
  for (const char *c = rest; *c != '\0'; c++) count += *c == ',';
  char *v = tn_arena_alloc(p->arena, tn_size_mul(count, sizeof(int64_t)));
  if (v == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < count; i++)
    TN_TRY(option_read_entry(p, option_next_entry(&rest), integer, v + i * sizeof(int64_t)));
  *n = (int64_t)count;
  *items = v;
  return TN_OK;
}

static tn_status option_parse_ints(const option_parsing *p, const char *text, tn_option_value *value) {
  void *v = NULL;
  TN_TRY(option_parse_list(p, text, true, &value->ints.n, &v));
  value->ints.v = v;
  return TN_OK;
}

static tn_status option_parse_floats(const option_parsing *p, const char *text, tn_option_value *value) {
  void *v = NULL;
  TN_TRY(option_parse_list(p, text, false, &value->floats.n, &v));
  value->floats.v = v;
  return TN_OK;
}

/* The readers of [data] transforms and of schedules, which know the items, set all lists but the empty one.
 */
static tn_status option_parse_transforms(const option_parsing *p, const char *text, tn_option_value *value) {
  value->transforms = (tn_transforms){0, NULL};
  if (strcmp(text, "[]") == 0) return TN_OK;
  return tn_failf(p->handle, TN_EUNSUPPORTED, "a list of transforms is read in [data] transforms only");
}

static tn_status option_parse_schedules(const option_parsing *p, const char *text, tn_option_value *value) {
  value->schedules = (tn_schedules){0, NULL};
  if (strcmp(text, "[]") == 0) return TN_OK;
  return tn_failf(p->handle, TN_EUNSUPPORTED, "a list of schedules is read in [schedule] only");
}

typedef tn_status (*option_parser)(const option_parsing *p, const char *text, tn_option_value *value);

static const option_parser option_parsers[] = {
    [TN_OPT_FLAG] = option_parse_flag,           [TN_OPT_INT] = option_parse_int,
    [TN_OPT_FLOAT] = option_parse_float,         [TN_OPT_TEXT] = option_parse_text,
    [TN_OPT_PATH] = option_parse_path,           [TN_OPT_ENUM] = option_parse_enum,
    [TN_OPT_INTS] = option_parse_ints,           [TN_OPT_FLOATS] = option_parse_floats,
    [TN_OPT_SIZE] = option_parse_size,           [TN_OPT_DURATION] = option_parse_duration,
    [TN_OPT_DTYPE] = option_parse_dtype,         [TN_OPT_INIT] = option_parse_text,
    [TN_OPT_CODE] = option_parse_code,           [TN_OPT_TRANSFORMS] = option_parse_transforms,
    [TN_OPT_SCHEDULES] = option_parse_schedules,
};

tn_status tn_option_parse(const void *handle, tn_arena *arena, const char *folder, const tn_option *option,
                          const char *text, tn_option_value *value) {
  option_parsing parsing = {.handle = handle, .arena = arena, .folder = folder, .option = option};
  char *copy = tn_arena_strdup(arena, text);
  if (copy == NULL) return TN_ENOMEM;
  tn_status status = option_parsers[option->type](&parsing, tn_text_trim(copy), value);
  if (status != TN_OK) return tn_wrap(handle, status, "%s", option->name);
  return tn_option_check(handle, option, value);
}
