#include "core/tokenizer/text/unicode.h"

#include <string.h>

#include "core/base/vec.h"

/* ---- UTF-8 ---- */

/* Eight bytes of ASCII at a time; most texts are mostly that. */
static size_t unicode_ascii(const char *text, size_t bytes) {
  size_t at = 0;
  for (uint64_t word; at + 8 <= bytes; at += 8) {
    memcpy(&word, text + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (at < bytes && (unsigned char)text[at] < 0x80) at++;
  return at;
}

size_t tn_unicode_invalid(const char *text, size_t bytes) {
  size_t at = 0;
  for (;;) {
    at += unicode_ascii(text + at, bytes - at);
    if (at == bytes) return at;
    size_t n = tn_text_character_bytes(text + at, bytes - at);
    if (n == 0) return at;
    at += n;
  }
}

size_t tn_unicode_write(int32_t code, char *to) {
  if (code < 0x80) return to[0] = (char)code, 1;
  size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const unsigned char lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = n; i-- > 1; code >>= 6) to[i] = (char)(0x80 | (code & 0x3f));
  to[0] = (char)(lead[n] | code);
  return n;
}

int32_t tn_unicode_prefix(const char *text, size_t n) {
  const unsigned char *u = (const unsigned char *)text;
  if (u[0] < 0x80) return 1;
  if (u[0] < 0xc2 || u[0] > 0xf4) return -1;
  int32_t need = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
  unsigned char low = u[0] == 0xe0 ? 0xa0 : u[0] == 0xf0 ? 0x90 : 0x80;
  unsigned char high = u[0] == 0xed ? 0x9f : u[0] == 0xf4 ? 0x8f : 0xbf;
  for (int32_t i = 1; i < need; i++, low = 0x80, high = 0xbf) {
    if ((size_t)i == n) return 0;
    if (u[i] < low || u[i] > high) return -i;
  }
  return need;
}

/* ---- properties ---- */

bool tn_unicode_is_space(int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool unicode_is_ascii_punctuation(int32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

#ifdef TN_HAVE_UTF8PROC
#include <utf8proc.h>

tn_status tn_unicode_need(const void *handle, const char *place) {
  (void)handle, (void)place;
  return TN_OK;
}

bool tn_unicode_is_punctuation(int32_t c) {
  if (c < 0x80) return unicode_is_ascii_punctuation(c);
  utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool tn_unicode_is_number(int32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool tn_unicode_is_mark(int32_t c) {
  utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool tn_unicode_is_nonspacing_mark(int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_MN; }

bool tn_unicode_is_control(int32_t c) {
  utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool tn_unicode_is_word(int32_t c) {
  utf8proc_category_t category = utf8proc_category(c);
  bool circled = (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
                 (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC || circled;
}

size_t tn_unicode_cluster(const char *text, size_t bytes, size_t at) {
  utf8proc_int32_t state = 0;
  int32_t last = tn_unicode_next(text, &at);
  for (size_t next = at; at < bytes; at = next) {
    int32_t code = tn_unicode_next(text, &next);
    if (utf8proc_grapheme_break_stateful(last, code, &state)) break;
    last = code;
  }
  return at;
}

/* The only lower case of two characters is that of I with a dot. */
void tn_unicode_add_lower(tn_text *to, int32_t code) {
  char bytes[4];
  if (code == 0x130)
    tn_text_addn(to, "i\xcc\x87", 3);
  else
    tn_text_addn(to, bytes, tn_unicode_write(utf8proc_tolower(code), bytes));
}

/* A run that begins with a starter which the text before it cannot change. */
static tn_status unicode_normalize_run(const void *handle, utf8proc_option_t options, const char *text,
                                       size_t bytes, tn_unicode_codes *codes, tn_text *to) {
  const utf8proc_uint8_t *from = (const utf8proc_uint8_t *)text;
  TN_TRY(tn_vec_reserve(handle, codes, bytes + 4));
  utf8proc_ssize_t n =
      utf8proc_decompose(from, (utf8proc_ssize_t)bytes, codes->v, (utf8proc_ssize_t)codes->cap - 1, options);
  if (n > 0 && (size_t)n >= codes->cap) {
    TN_TRY(tn_vec_reserve(handle, codes, (size_t)n + 1));
    n = utf8proc_decompose(from, (utf8proc_ssize_t)bytes, codes->v, n, options);
  }
  if (n >= 0) n = utf8proc_reencode(codes->v, n, options);
  if (n < 0) return tn_failf(handle, TN_EINTERNAL, "utf8proc: %s", utf8proc_errmsg(n));
  tn_text_addn(to, (const char *)codes->v, (size_t)n);
  return TN_OK;
}

/* ASCII is its own normal form, and an ASCII character is never joined to those before it: only runs of other
 * characters, each with the one in front, are normalized. */
tn_status tn_unicode_normalize(const void *handle, int32_t form, const char *text, size_t bytes,
                               tn_unicode_codes *codes, tn_text *to) {
  static const utf8proc_option_t options[] = {
      [TN_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
      [TN_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
      [TN_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
      [TN_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
  for (size_t at = 0, end; at < bytes; at = end) {
    size_t ascii = unicode_ascii(text + at, bytes - at);
    bool more = at + ascii < bytes;
    if (more && ascii > 0) ascii--;
    tn_text_addn(to, text + at, ascii);
    at += ascii;
    for (end = at; end < bytes && (end == at || (unsigned char)text[end] >= 0x80);)
      tn_unicode_next(text, &end);
    if (more) TN_TRY(unicode_normalize_run(handle, options[form], text + at, end - at, codes, to));
  }
  return TN_OK;
}

#else

tn_status tn_unicode_need(const void *handle, const char *place) {
  return tn_failf(handle, TN_EUNAVAILABLE,
                  "%s: needs Unicode's properties, and this build has none: install utf8proc (on Debian: "
                  "libutf8proc-dev) and build Tenon again",
                  place);
}

/* Never called: a file that needs them is refused by tn_unicode_need. */
bool tn_unicode_is_punctuation(int32_t c) { return unicode_is_ascii_punctuation(c); }
bool tn_unicode_is_number(int32_t c) { return c >= '0' && c <= '9'; }
bool tn_unicode_is_mark(int32_t c) { return c < 0; }
bool tn_unicode_is_nonspacing_mark(int32_t c) { return c < 0; }
bool tn_unicode_is_control(int32_t c) { return c < ' '; }
bool tn_unicode_is_word(int32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || tn_unicode_is_number(c) || c == '_';
}

size_t tn_unicode_cluster(const char *text, size_t bytes, size_t at) {
  (void)bytes;
  tn_unicode_next(text, &at);
  return at;
}

void tn_unicode_add_lower(tn_text *to, int32_t code) {
  char bytes[4];
  tn_text_addn(to, bytes, tn_unicode_write(code >= 'A' && code <= 'Z' ? code + 32 : code, bytes));
}

tn_status tn_unicode_normalize(const void *handle, int32_t form, const char *text, size_t bytes,
                               tn_unicode_codes *codes, tn_text *to) {
  (void)form, (void)text, (void)bytes, (void)codes, (void)to;
  return tn_unicode_need(handle, "a normal form");
}
#endif
