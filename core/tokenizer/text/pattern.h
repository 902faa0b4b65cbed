/* core/tokenizer/text/pattern.h: regular expressions by PCRE2, compiled to machine code. The patterns of
 * tokenizer.json are written for Oniguruma; where its classes differ from PCRE2's, the pattern is changed. A
 * build without PCRE2 refuses every pattern. */
#pragma once

#include "core/base/env.h"

/* Within brackets: alphabetic characters, marks, decimal numbers and connectors. */
#define TN_PATTERN_LETTERS                                                                                   \
  "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}" \
  "-\\x{1f189}"

typedef struct tn_pattern tn_pattern;
/* One thread's memory for the result, and its stack. */
typedef struct tn_matcher tn_matcher;

/* TN_EINVAL: PCRE2 refuses it. `place` is in front of the message. The handle outlives the pattern, and that
 * of a matcher the matcher: their memory comes from it. */
tn_status tn_pattern_open(const void *handle, const char *place, const char *text, size_t bytes,
                          tn_pattern **pattern);
void tn_pattern_close(const void *handle, tn_pattern *pattern);

tn_status tn_matcher_open(const void *handle, tn_matcher **matcher);
void tn_matcher_close(const void *handle, tn_matcher *matcher);

/* The first match that begins at `from` or behind it, in valid UTF-8. Without a match, *start is SIZE_MAX. */
tn_status tn_pattern_find(const void *handle, const tn_pattern *pattern, tn_matcher *matcher,
                          const char *text, size_t bytes, size_t from, size_t *start, size_t *end);
