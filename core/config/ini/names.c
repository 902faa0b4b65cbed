/* core/config/ini/names.c: which names of sections and keys, and which lines of values, are fit to be
 * written and read back. */
#include "core/config/ini/lines.h"

#include <ctype.h>
#include <string.h>

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Length of the character at `p`, so that a message shows UTF-8 whole. */
static int character_length(const char *p) {
  int n = 1;
  while (((unsigned char)p[n] & 0xC0) == 0x80) n++;
  return n;
}

/* The text between the brackets with its white space folded. */
static char *fold(const void *handle, tn_arena *arena, const char *text) {
  tn_text folded = tn_text_new(handle);
  for (const char *p = text; *p != '\0'; p++) {
    if (!is_blank(*p))
      tn_text_addn(&folded, p, 1);
    else if (folded.n > 0 && p[1] != '\0' && !is_blank(p[1]))
      tn_text_addn(&folded, " ", 1);
  }
  char *taken = tn_text_take(&folded), *kept = NULL;
  if (taken != NULL) kept = tn_arena_strdup(arena, taken);
  tn_release(handle, taken);
  return kept;
}

/* The first character that is neither a letter, nor a digit, nor one of `more`; NULL: none. */
static const char *odd_character(const char *name, const char *more) {
  for (; *name != '\0'; name++)
    if (((unsigned char)*name & 0x80) || (!isalnum((unsigned char)*name) && strchr(more, *name) == NULL))
      return name;
  return NULL;
}

tn_status tn_ini_section_name(const void *handle, tn_arena *arena, const char *place, const char *text,
                              const char **name) {
  char *folded = fold(handle, arena, text);
  if (folded == NULL) return TN_ENOMEM;
  *name = folded;
  if (*folded == '\0')
    return tn_failf(handle, TN_EINVAL, "%s: the section's name is empty, expected one such as [run]", place);
  const char *odd = odd_character(folded, "_-. ");
  if (odd != NULL)
    return tn_failf(handle, TN_EINVAL,
                    "%s: '%.*s' in the section name [%s], expected letters, digits, '_', '-', '.' and blanks",
                    place, character_length(odd), odd, folded);
  if (strlen(folded) > TN_INI_NAME_LIMIT)
    return tn_failf(handle, TN_EINVAL, "%s: the section name [%.20s...] has %zu bytes, expected at most %d",
                    place, folded, strlen(folded), TN_INI_NAME_LIMIT);
  return TN_OK;
}

tn_status tn_ini_key_name(const void *handle, const char *place, const char *name) {
  const char *odd = odd_character(name, "_-");
  if (*name == '\0')
    return tn_failf(handle, TN_EINVAL, "%s: nothing before '=', expected 'key = value'", place);
  if (odd != NULL)
    return tn_failf(handle, TN_EINVAL, "%s: '%.*s' in the key '%s', expected letters, digits, '_' and '-'",
                    place, character_length(odd), odd, name);
  if (strlen(name) > TN_INI_NAME_LIMIT)
    return tn_failf(handle, TN_EINVAL, "%s: the key '%.20s...' has %zu bytes, expected at most %d", place,
                    name, strlen(name), TN_INI_NAME_LIMIT);
  return TN_OK;
}

/* "[data.train]", but not the list "[30, 60]": a header begins with a letter and has no comma. */
static bool looks_like_header(const char *line) {
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
    if ((*p == '#' || *p == ';') && (p == line || is_blank(p[-1])))
      return "'#' or ';' after a blank begins a comment";
  }
  return alone && looks_like_header(line) ? "it looks like a section's header" : NULL;
}
