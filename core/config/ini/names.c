/* core/config/ini/names.c: validation of section names, key names and value lines. */
#include "core/config/ini/lines.h"

#include <ctype.h>
#include <string.h>

/* Length in bytes of the UTF-8 character at `p`, for messages. */
static int ini_character_length(const char *p) {
  int n = 1;
  while (((unsigned char)p[n] & 0xC0) == 0x80) n++;
  return n;
}

/* The text between the brackets with runs of blanks reduced to one. */
static char *ini_fold_blanks(const void *handle, tn_arena *arena, const char *text) {
  tn_text folded = tn_text_new(handle);
  for (const char *p = text; *p != '\0'; p++) {
    if (!tn_ini_is_blank(*p))
      tn_text_addn(&folded, p, 1);
    else if (folded.n > 0 && p[1] != '\0' && !tn_ini_is_blank(p[1]))
      tn_text_addn(&folded, " ", 1);
  }
  char *taken = tn_text_take(&folded), *kept = NULL;
  if (taken != NULL) kept = tn_arena_strdup(arena, taken);
  tn_release(handle, taken);
  return kept;
}

/* The first character that is neither a letter, nor a digit, nor in `more`; NULL if all are valid. */
static const char *ini_odd_character(const char *name, const char *more) {
  for (; *name != '\0'; name++)
    if (((unsigned char)*name & 0x80) || (!isalnum((unsigned char)*name) && strchr(more, *name) == NULL))
      return name;
  return NULL;
}

tn_status tn_ini_section_name(const void *handle, tn_arena *arena, const char *where, const char *text,
                              const char **name) {
  char *folded = ini_fold_blanks(handle, arena, text);
  if (folded == NULL) return TN_ENOMEM;
  *name = folded;
  if (*folded == '\0')
    return tn_failf(handle, TN_EINVAL, "%s: the section's name is empty, expected one such as [run]", where);
  const char *odd = ini_odd_character(folded, "_-. ");
  if (odd != NULL)
    return tn_failf(handle, TN_EINVAL,
                    "%s: '%.*s' in the section name [%s], expected letters, digits, '_', '-', '.' and blanks",
                    where, ini_character_length(odd), odd, folded);
  if (strlen(folded) > TN_INI_NAME_LIMIT)
    return tn_failf(handle, TN_EINVAL, "%s: the section name [%.20s...] has %zu bytes, expected at most %d",
                    where, folded, strlen(folded), TN_INI_NAME_LIMIT);
  return TN_OK;
}

/* Keys of [sweep] name keys of other sections, optimizer.lr; elsewhere the section refuses them. */
tn_status tn_ini_key_name(const void *handle, const char *where, const char *name) {
  const char *odd = ini_odd_character(name, "_-.");
  if (*name == '\0')
    return tn_failf(handle, TN_EINVAL, "%s: nothing before '=', expected 'key = value'", where);
  if (odd != NULL)
    return tn_failf(handle, TN_EINVAL, "%s: '%.*s' in the key '%s', expected letters, digits, '_' and '-'",
                    where, ini_character_length(odd), odd, name);
  if (strlen(name) > TN_INI_NAME_LIMIT)
    return tn_failf(handle, TN_EINVAL, "%s: the key '%.20s...' has %zu bytes, expected at most %d", where,
                    name, strlen(name), TN_INI_NAME_LIMIT);
  return TN_OK;
}

/* True for "[data.train]", false for the list "[30, 60]": a header begins with a letter and has no comma. */
static bool ini_looks_like_header(const char *line) {
  const char *p = line + strspn(line, " \t");
  if (*p++ != '[') return false;
  p += strspn(p, " \t");
  if (!isalpha((unsigned char)*p)) return false;
  while (isalnum((unsigned char)*p) || strchr("_-. \t", *p) != NULL) {
    if (*p == '\0') return false;
    p++;
  }
  return *p == ']' && p[1 + strspn(p + 1, " \t")] == '\0';
}

const char *tn_ini_line_flaw(const char *line, bool alone) {
  for (const char *p = line; *p != '\0'; p++) {
    if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f) return "it has a control character";
    if ((*p == '#' || *p == ';') && (p == line || tn_ini_is_blank(p[-1])))
      return "'#' or ';' after a blank begins a comment";
  }
  return alone && ini_looks_like_header(line) ? "it looks like a section's header" : NULL;
}
