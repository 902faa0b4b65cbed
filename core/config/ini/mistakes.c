/* core/config/ini/mistakes.c: collects the mistakes of a configuration. */
#include "core/config/ini/mistakes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text/text.h"

/* The line of "FILE:LINE: ..."; *file gets the length of FILE. 0: the text does not begin so. */
static long mistake_line(const char *text, size_t *file) {
  *file = strcspn(text, ": ");
  return text[*file] == ':' ? strtol(text + *file + 1, NULL, 10) : 0;
}

/* Whether `a` stands before `b` in the same file. */
static bool mistake_is_before(const char *a, const char *b) {
  size_t na, nb;
  long line_a = mistake_line(a, &na), line_b = mistake_line(b, &nb);
  return line_a > 0 && line_b > 0 && na == nb && strncmp(a, b, na) == 0 && line_a < line_b;
}

static bool mistakes_have(const tn_mistakes *mistakes, const char *text) {
  for (int32_t i = 0; i < mistakes->n; i++)
    if (strcmp(mistakes->v[i], text) == 0) return true;
  return false;
}

tn_status tn_mistakes_note(const void *handle, tn_arena *arena, tn_mistakes *mistakes, tn_status status) {
  if (status != TN_EINVAL) return status;
  mistakes->noted++;
  const char *text = tn_error_text(handle);
  if (mistakes_have(mistakes, text) || strchr(text, '\n') != NULL) return TN_OK; /* told already */
  if (mistakes->n == TN_MISTAKES_KEPT) return tn_mistakes_tell(handle, mistakes);
  const char *kept = tn_arena_strdup(arena, text),
             **grown = kept ? tn_arena_grow(arena, mistakes->v, (size_t)mistakes->n, sizeof *grown) : NULL;
  if (grown == NULL) return TN_ENOMEM;
  mistakes->v = grown;
  int32_t at = mistakes->n++;
  for (; at > 0 && mistake_is_before(kept, grown[at - 1]); at--) grown[at] = grown[at - 1];
  grown[at] = kept;
  tn_error_clear(handle);
  return TN_OK;
}

tn_status tn_mistakes_add(tn_arena *arena, tn_mistakes *mistakes, const char *more) {
  for (int32_t i = 0; i < mistakes->n; i++) {
    const char *text = tn_arena_printf(arena, "%s%s", mistakes->v[i], more);
    if (text == NULL) return TN_ENOMEM;
    mistakes->v[i] = text;
  }
  return TN_OK;
}

tn_status tn_mistakes_tell(const void *handle, const tn_mistakes *mistakes) {
  if (mistakes->n == 0) return TN_OK;
  return tn_fail_lines(handle, TN_EINVAL, mistakes->v, mistakes->n, TN_MISTAKES_TOLD);
}
