/* plugins/sources/arrays/field_text.c: reads a field from its end, since a path may have blanks: words that
 * say something of the numbers are taken off until one is no such word. */
#include "plugins/sources/arrays/field_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = PATH_MAX + 256 };

const char FIELD_TEXT_FORM[] =
    "NAME: FILE, as in image: photos.npy, and behind it, where they are needed, TYPE[DIMENSIONS] +BYTES of "
    "rows without a header, `as TYPE[DIMENSIONS]`, and the range of class numbers, 0..9";

static const char field_blanks[] = " \t";

/* ---- words ---- */

/* Whole numbers that the fields of an array may have. */
static int32_t field_number(const char **at, int64_t *number) {
  char *end;
  if (**at < '0' || **at > '9') return 0;
  *number = strtoll(*at, &end, 10);
  *at = end;
  return *number >= 0 && *number < INT64_MAX;
}

/* "[28, 28]", or "[]". */
static int32_t field_dims(const char *at, int64_t *dims, int32_t *rank) {
  if (*at++ != '[') return 0;
  for (*rank = 0;; (*rank)++) {
    at += strspn(at, field_blanks);
    if (*at == ']' && *rank == 0) break;
    if (*rank == TN_MAX_RANK - 1 || !field_number(&at, &dims[*rank])) return 0;
    at += strspn(at, field_blanks);
    if (*at == ']') {
      (*rank)++;
      break;
    }
    if (*at++ != ',') return 0;
  }
  return at[1] == '\0';
}

/* "0..9": the classes are those up to the greatest. */
static int32_t field_text_take_range(const char *word, field_text *f) {
  int64_t least, greatest;
  if (!field_number(&word, &least) || strncmp(word, "..", 2) != 0) return 0;
  word += 2;
  if (!field_number(&word, &greatest) || *word != '\0' || greatest < least || greatest >= INT32_MAX) return 0;
  if (f->classes > 0) return 0;
  f->classes = greatest + 1;
  return 1;
}

static int32_t field_take_skip(const char *word, field_text *f) {
  return *word++ == '+' && f->skip == 0 && field_number(&word, &f->skip) && *word == '\0';
}

/* "u8[28, 28]" of a file without a header. */
static int32_t field_take_raw(const char *word, field_text *f) {
  size_t n = strcspn(word, "[");
  array_element element = element_named(word, n);
  if (element.kind == ELEMENT_NONE || f->raw.kind != ELEMENT_NONE) return 0;
  f->raw = element;
  return field_dims(word + n, f->raw_dims, &f->raw_rank);
}

/* "f32" or "f32[784]" behind `as`. */
static int32_t field_take_as(const char *word, field_text *f) {
  size_t n = strcspn(word, "[");
  if (f->as_dtype != TN_ANY) return 0;
  for (int32_t dtype = TN_ANY + 1; dtype < TN_DTYPES; dtype++)
    if (strlen(tn_dtype_name(dtype)) == n && memcmp(tn_dtype_name(dtype), word, n) == 0) f->as_dtype = dtype;
  if (f->as_dtype == TN_ANY) return 0;
  return word[n] == '\0' || field_dims(word + n, f->as_dims, &f->as_rank);
}

/* ---- a field ---- */

/* Cuts blanks at the end off, and finds the last word, in which brackets may hold blanks. NULL: there is one
 * word at most. */
static char *field_last_word(char *text) {
  size_t n = strlen(text);
  while (n > 0 && strchr(field_blanks, text[n - 1]) != NULL) text[--n] = '\0';
  char *from = n > 0 && text[n - 1] == ']' ? strrchr(text, '[') : text + n;
  if (from == NULL) return NULL;
  while (from > text && strchr(field_blanks, from[-1]) == NULL) from--;
  return from > text ? from : NULL;
}

/* Takes the last word off, if it says something. */
static int32_t field_text_take_word(char *text, field_text *f) {
  char *word = field_last_word(text);
  if (word == NULL) return 0;
  char before = word[-1];
  word[-1] = '\0';
  char *as = field_last_word(text);
  if (as != NULL && strcmp(as, "as") == 0 && field_take_as(word, f)) {
    *as = '\0';
    return 1;
  }
  if (field_text_take_range(word, f) || field_take_skip(word, f) || field_take_raw(word, f)) return 1;
  word[-1] = before;
  return 0;
}

/* "all.npz/depth": a file and one of its arrays. */
static void field_split_member(field_text *f) {
  static const char *const archives[] = {".npz/", ".safetensors/"};
  for (int i = 0; i < 2; i++) {
    char *found = strstr(f->path, archives[i]);
    if (found == NULL) continue;
    char *slash = found + strlen(archives[i]) - 1;
    snprintf(f->member, sizeof f->member, "%s", slash + 1);
    *slash = '\0';
  }
}

static tn_status field_join(const void *handle, const char *option, const char *folder, const char *file,
                            field_text *f) {
  int32_t given = *file == '/', known = source_has_path(folder);
  if (!given && !known)
    return tn_fail(
        handle, TN_EINVAL, option,
        "%s: %s is relative, and folder is not set, expected the folder where paths begin: folder = .",
        option, file);
  int n = snprintf(f->path, sizeof f->path, "%s%s%s", given ? "" : folder, given ? "" : "/", file);
  if (n < 0 || n >= (int)sizeof f->path)
    return tn_fail(handle, TN_EINVAL, option, "%s: the path %s is too long", option, file);
  field_split_member(f);
  return TN_OK;
}

tn_status field_text_read(const field_list *list, const field_entry *entry, const char *folder,
                          field_text *f) {
  char file[VALUE_BYTES];
  *f = (field_text){.as_rank = -1};
  TN_TRY(field_list_name(list, entry, f->name, sizeof f->name));
  if (entry->value.n >= sizeof file) return field_list_refuse(list, entry);
  memcpy(file, entry->value.text, entry->value.n);
  file[entry->value.n] = '\0';
  while (field_text_take_word(file, f)) continue;
  field_last_word(file); /* cuts the blanks off */
  if (*file == '\0') return field_list_refuse(list, entry);
  return field_join(list->handle, list->option, folder, file, f);
}
