#include "core/tokenizer/text/pattern.h"

#include <string.h>

#include "core/base/text/text.h"

#ifdef TN_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct tn_pattern {
  pcre2_general_context *memory;
  pcre2_code *code;
  bool compiled; /* to machine code */
};

struct tn_matcher {
  pcre2_general_context *memory;
  pcre2_match_data *data;
  pcre2_match_context *context;
  pcre2_jit_stack *stack;
};

enum { JIT_STACK_START = 32 << 10, JIT_STACK_MOST = 16 << 20, HEAP_LIMIT_KIB = 256 << 10 };

/* ---- Oniguruma's classes ---- */

/* PCRE2's \s has U+180E as well, its \w has other numbers, but no marks, connectors and letters in circles,
 * and its \h is horizontal space. */
static const char SPACES[] = "\\t-\\r\\x{85}\\p{Z}";
static const char WORDS[] = TN_PATTERN_LETTERS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
static const char HEXES[] = "0-9a-fA-F";

static void pattern_add_class(tn_text *to, bool inside, bool inverted, const char *members) {
  if (inside)
    tn_text_add(to, members);
  else
    tn_text_addf(to, "[%s%s]", inverted ? "^" : "", members);
}

/* Writes the escape text[0..1] as PCRE2 has it; an inverted class within a class stays PCRE2's. */
static void pattern_add_escape(tn_text *to, const char *text, bool inside) {
  switch (text[1]) {
  case 's': pattern_add_class(to, inside, false, SPACES); return;
  case 'w': pattern_add_class(to, inside, false, WORDS); return;
  case 'h': pattern_add_class(to, inside, false, HEXES); return;
  case 'S':
  case 'W':
  case 'H':
    if (inside) break;
    pattern_add_class(to, false, true, text[1] == 'S' ? SPACES : text[1] == 'W' ? WORDS : HEXES);
    return;
  default: break;
  }
  tn_text_addn(to, text, 2);
}

static tn_text pattern_translate(const void *handle, const char *text, size_t bytes) {
  tn_text to = tn_text_new(handle);
  bool inside = false;
  tn_text_addn(&to, "", 0);
  for (size_t i = 0; i < bytes; i++) {
    if (text[i] == '\\' && i + 1 < bytes) {
      pattern_add_escape(&to, text + i++, inside);
      continue;
    }
    if (text[i] == '[' && !inside)
      inside = true;
    else if (text[i] == ']')
      inside = false;
    tn_text_addn(&to, text + i, 1);
  }
  return to;
}

/* ---- opening ---- */

static void *pattern_alloc(size_t bytes, void *handle) { return tn_alloc(handle, bytes); }
static void pattern_release(void *block, void *handle) { tn_release(handle, block); }

static pcre2_general_context *pattern_memory(const void *handle) {
  return pcre2_general_context_create(pattern_alloc, pattern_release, (void *)(uintptr_t)handle);
}

static tn_status pattern_compile(const void *handle, const char *place, const char *text, size_t bytes,
                                 tn_pattern *p) {
  int error = 0;
  PCRE2_SIZE at = 0;
  p->memory = pattern_memory(handle);
  pcre2_compile_context *context = p->memory != NULL ? pcre2_compile_context_create(p->memory) : NULL;
  if (context == NULL) return TN_ENOMEM;
  p->code = pcre2_compile((PCRE2_SPTR)text, bytes, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
                          &at, context);
  pcre2_compile_context_free(context);
  if (p->code == NULL && error == PCRE2_ERROR_HEAP_FAILED) return TN_ENOMEM;
  if (p->code == NULL) {
    PCRE2_UCHAR reason[160] = "";
    pcre2_get_error_message(error, reason, sizeof reason);
    return tn_failf(handle, TN_EINVAL, "%s: \"%.200s\" is no pattern of PCRE2: %s at byte %zu", place, text,
                    (const char *)reason, (size_t)at);
  }
  p->compiled = pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0;
  return TN_OK;
}

tn_status tn_pattern_open(const void *handle, const char *place, const char *text, size_t bytes,
                          tn_pattern **pattern) {
  *pattern = NULL;
  tn_pattern *p = tn_alloc(handle, sizeof *p);
  tn_text translated = pattern_translate(handle, text, bytes);
  tn_status status = p == NULL || translated.failed ? TN_ENOMEM : TN_OK;
  if (status == TN_OK) status = pattern_compile(handle, place, translated.v, translated.n, p);
  tn_text_free(&translated);
  if (status == TN_OK)
    *pattern = p;
  else
    tn_pattern_close(handle, p);
  return status;
}

void tn_pattern_close(const void *handle, tn_pattern *pattern) {
  if (pattern == NULL) return;
  pcre2_code_free(pattern->code);
  pcre2_general_context_free(pattern->memory);
  tn_release(handle, pattern);
}

tn_status tn_matcher_open(const void *handle, tn_matcher **matcher) {
  *matcher = NULL;
  tn_matcher *m = tn_alloc(handle, sizeof *m);
  if (m == NULL) return TN_ENOMEM;
  m->memory = pattern_memory(handle);
  if (m->memory != NULL) {
    m->data = pcre2_match_data_create(1, m->memory);
    m->context = pcre2_match_context_create(m->memory);
    m->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MOST, m->memory);
  }
  if (m->data == NULL || m->context == NULL || m->stack == NULL) {
    tn_matcher_close(handle, m);
    return tn_failf(handle, TN_ENOMEM, "out of memory for PCRE2");
  }
  pcre2_jit_stack_assign(m->context, NULL, m->stack);
  pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
  *matcher = m;
  return TN_OK;
}

void tn_matcher_close(const void *handle, tn_matcher *m) {
  if (m == NULL) return;
  pcre2_match_data_free(m->data);
  pcre2_match_context_free(m->context);
  pcre2_jit_stack_free(m->stack);
  pcre2_general_context_free(m->memory);
  tn_release(handle, m);
}

/* ---- matching ---- */

/* PCRE2 matches again without machine code where that has too small a stack. */
static int pattern_match(const tn_pattern *p, tn_matcher *m, const char *text, size_t bytes, size_t from) {
  PCRE2_SPTR subject = (PCRE2_SPTR)text;
  int n = PCRE2_ERROR_JIT_STACKLIMIT;
  if (p->compiled) n = pcre2_jit_match(p->code, subject, bytes, from, 0, m->data, m->context);
  if (n != PCRE2_ERROR_JIT_STACKLIMIT) return n;
  return pcre2_match(p->code, subject, bytes, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->context);
}

tn_status tn_pattern_find(const void *handle, const tn_pattern *p, tn_matcher *m, const char *text,
                          size_t bytes, size_t from, size_t *start, size_t *end) {
  *start = *end = SIZE_MAX;
  int n = pattern_match(p, m, text, bytes, from);
  if (n == PCRE2_ERROR_NOMATCH) return TN_OK;
  if (n < 0) {
    PCRE2_UCHAR reason[160] = "";
    pcre2_get_error_message(n, reason, sizeof reason);
    return tn_failf(handle, TN_EINVAL, "the splitting pattern fails at byte %zu of a text of %zu bytes: %s",
                    from, bytes, (const char *)reason);
  }
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(m->data);
  *start = ends[0];
  *end = ends[1] > ends[0] ? ends[1] : ends[0];
  return TN_OK;
}

#else

static tn_status pattern_unavailable(const void *handle, const char *place) {
  return tn_failf(handle, TN_EUNAVAILABLE,
                  "%s: needs regular expressions, and this build has none: install PCRE2 (on Debian: "
                  "libpcre2-dev) and build Tenon again",
                  place);
}

tn_status tn_pattern_open(const void *handle, const char *place, const char *text, size_t bytes,
                          tn_pattern **pattern) {
  (void)text, (void)bytes;
  *pattern = NULL;
  return pattern_unavailable(handle, place);
}

void tn_pattern_close(const void *handle, tn_pattern *pattern) { (void)handle, (void)pattern; }

tn_status tn_matcher_open(const void *handle, tn_matcher **matcher) {
  (void)handle;
  *matcher = NULL;
  return TN_OK;
}

void tn_matcher_close(const void *handle, tn_matcher *matcher) { (void)handle, (void)matcher; }

tn_status tn_pattern_find(const void *handle, const tn_pattern *pattern, tn_matcher *matcher,
                          const char *text, size_t bytes, size_t from, size_t *start, size_t *end) {
  (void)pattern, (void)matcher, (void)text, (void)bytes, (void)from;
  *start = *end = SIZE_MAX;
  return pattern_unavailable(handle, "a pattern");
}
#endif
