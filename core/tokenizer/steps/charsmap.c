/* core/tokenizer/steps/charsmap.c: SentencePiece's table of normal forms, which tokenizer.json has as the
 * normalizer "Precompiled": the bytes of a double array (Aoe, 1989) and the texts that it leads to, in
 * base64. */
#include <string.h>

#include "core/tokenizer/tokenizer.h"

/* ---- reading ---- */

static int32_t charsmap_sextet(char c) {
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c != '\0' ? strchr(alphabet, c) : NULL;
  return at != NULL ? (int32_t)(at - alphabet) : -1;
}

/* *bytes is the number of those before the padding. */
static tn_status charsmap_decode(const tn_json_place *place, const char *text, size_t n, unsigned char *to,
                                 size_t *bytes) {
  uint32_t held = 0;
  int32_t bits = 0;
  *bytes = 0;
  while (n > 0 && text[n - 1] == '=') n--;
  for (size_t i = 0; i < n; i++) {
    int32_t sextet = charsmap_sextet(text[i]);
    if (sextet < 0) return tn_json_fail(place, TN_EINVAL, "is no base64 at byte %zu", i);
    held = held << 6 | (uint32_t)sextet;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    to[(*bytes)++] = (unsigned char)(held >> bits);
  }
  return TN_OK;
}

static uint32_t charsmap_word(const unsigned char *at) {
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* The size of the array, the array, and texts that end in a NUL. */
static tn_status charsmap_take(tn_tokenizer *t, const tn_json_place *place, const unsigned char *bytes,
                               size_t n, tn_step *step) {
  size_t size = n >= 4 ? charsmap_word(bytes) : 0;
  if (n < 8 || size % 4 != 0 || size == 0 || size > n - 4)
    return tn_json_fail(place, TN_EINVAL, "is no table of normal forms");
  uint32_t *units = tn_arena_alloc(&t->arena, size);
  if (units == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < size / 4; i++) units[i] = charsmap_word(bytes + 4 + 4 * i);
  step->units = units;
  step->n_units = (uint32_t)(size / 4);
  step->content_bytes = n - 4 - size;
  step->content = tn_json_keep(t, (const char *)bytes + 4 + size, step->content_bytes);
  return step->content != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_charsmap_read(tn_tokenizer *t, const tn_json_place *place, tn_step *step) {
  tn_json_place member = tn_json_member(place, "precompiled_charsmap");
  const char *text;
  size_t n, bytes;
  TN_TRY(tn_json_read_text(place, "precompiled_charsmap", NULL, &text, &n));
  unsigned char *decoded = tn_alloc(&t->env, n + 1);
  if (decoded == NULL) return TN_ENOMEM;
  tn_status status = charsmap_decode(&member, text, n, decoded, &bytes);
  if (status == TN_OK) status = charsmap_take(t, &member, decoded, bytes, step);
  tn_release(&t->env, decoded);
  return status;
}

/* ---- running ---- */

static uint32_t charsmap_offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

/* The text of the shortest prefix that has one, as the reference takes it, or of the longest, and its bytes;
 * NULL: none has. */
static const char *charsmap_find(const tn_step *step, const char *text, size_t bytes, bool longest,
                                 size_t *taken) {
  uint32_t at = charsmap_offset(step->units[0]);
  const char *found = NULL;
  for (size_t i = 0; i < bytes && text[i] != '\0' && (longest || found == NULL); i++) {
    uint32_t byte = (unsigned char)text[i];
    at ^= byte;
    if (at >= step->n_units || (step->units[at] & 0x800000ffu) != byte) break;
    uint32_t unit = step->units[at];
    at ^= charsmap_offset(unit);
    if (at >= step->n_units) break;
    if ((unit >> 8 & 1) == 0) continue;
    uint32_t value = step->units[at] & 0x7fffffffu;
    if (value >= step->content_bytes) break;
    found = step->content + value;
    *taken = i + 1;
  }
  return found;
}

const char *tn_charsmap_longest(const tn_step *step, const char *text, size_t bytes, size_t *taken) {
  return charsmap_find(step, text, bytes, true, taken);
}

static bool charsmap_replace(const tn_step *step, const char *text, size_t bytes, tn_text *to) {
  size_t taken;
  const char *form = charsmap_find(step, text, bytes, false, &taken);
  if (form != NULL) tn_text_add(to, form);
  return form != NULL;
}

/* Clusters of less than six bytes are sought as they are, and else their characters. */
void tn_charsmap_run(const tn_step *step, const char *text, size_t bytes, tn_text *to) {
  for (size_t at = 0, end; at < bytes; at = end) {
    end = tn_unicode_cluster(text, bytes, at);
    if (end - at < 6 && charsmap_replace(step, text + at, end - at, to)) continue;
    for (size_t start = at, next = at; start < end; start = next) {
      tn_unicode_next(text, &next);
      if (!charsmap_replace(step, text + start, next - start, to))
        tn_text_addn(to, text + start, next - start);
    }
  }
}
