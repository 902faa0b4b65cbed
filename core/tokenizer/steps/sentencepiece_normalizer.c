/* core/tokenizer/steps/sentencepiece_normalizer.c: the normalizer "SentencePiece", with the rules of Google's
 * library where tokenizer.json has others: symbols of the user are whole wherever they stand, and the longest
 * entry of the table of normal forms counts. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

static const char SPACE[] = "\xe2\x96\x81";
enum { SPACE_BYTES = 3 };

tn_status tn_sentencepiece_normalizer(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  const char *text;
  size_t n;
  TN_TRY(tn_json_read_flag(place, "add_dummy_prefix", true, &step->prefix));
  TN_TRY(tn_json_read_flag(place, "remove_extra_whitespaces", true, &step->clean));
  TN_TRY(tn_json_read_flag(place, "escape_whitespaces", true, &step->escape));
  TN_TRY(tn_json_read_text(place, "precompiled_charsmap", "", &text, &n));
  return n > 0 ? tn_charsmap_read(t, place, step) : TN_OK;
}

/* The form of the start of a text: a symbol of the user, the longest entry of the table, or a character.
 * Returns the bytes of the start. */
static size_t normalizer_form(const tn_tokenizer *t, const tn_step *step, const char *text, size_t bytes,
                              const char **form, size_t *n) {
  size_t taken = tn_sentencepiece_user(t, text, bytes);
  *form = text;
  if (taken == 0 && step->units != NULL) {
    const char *found = tn_charsmap_longest(step, text, bytes, &taken);
    if (found != NULL) {
      *form = found;
      *n = strlen(found);
      return taken;
    }
  }
  if (taken == 0) tn_unicode_next(text, &taken);
  return *n = taken;
}

static void normalizer_add(const tn_step *step, const char *text, size_t bytes, tn_text *to) {
  for (size_t i = 0; i < bytes; i++) {
    bool space = step->escape && text[i] == ' ';
    tn_text_addn(to, space ? SPACE : text + i, space ? SPACE_BYTES : 1);
  }
}

static size_t normalizer_skip_blanks(const tn_tokenizer *t, const tn_step *step, const char *text,
                                     size_t bytes) {
  const char *form;
  size_t at = 0, n;
  while (at < bytes) {
    size_t taken = normalizer_form(t, step, text + at, bytes - at, &form, &n);
    if (n != 1 || form[0] != ' ') break;
    at += taken;
  }
  return at;
}

static void normalizer_drop_end(const tn_step *step, tn_text *to) {
  const char *space = step->escape ? SPACE : " ";
  size_t n = strlen(space);
  while (to->n >= n && memcmp(to->v + to->n - n, space, n) == 0) to->n -= n;
}

void tn_sentencepiece_normalize(const tn_tokenizer *t, const tn_step *step, const char *text, size_t bytes,
                                tn_text *to) {
  size_t at = step->clean ? normalizer_skip_blanks(t, step, text, bytes) : 0, n;
  bool spaced = step->clean; /* a blank stands in front */
  const char *form;
  if (at == bytes) return;
  if (step->prefix) normalizer_add(step, " ", 1, to);
  for (; at < bytes;) {
    at += normalizer_form(t, step, text + at, bytes - at, &form, &n);
    for (; spaced && n > 0 && form[0] == ' '; n--) form++;
    normalizer_add(step, form, n, to);
    if (n > 0) spaced = form[n - 1] == ' ';
    if (!step->clean) spaced = false;
  }
  if (step->clean && !to->failed) normalizer_drop_end(step, to);
}
