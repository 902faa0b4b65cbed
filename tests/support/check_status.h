/* tests/support/check_status.h: assertions on statuses and the messages of a test_env. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_env.h"

static inline void assert_contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static inline void assert_error(const test_env *t, tn_status status, tn_status want, const char *part) {
  if (status != want) fail_msg("status %d instead of %d: %s", status, want, tn_error_text(t));
  assert_contains(tn_error_text(t), part);
}

static inline void assert_ok(const test_env *t, tn_status status) {
  if (status != TN_OK) fail_msg("status %d: %s", status, tn_error_text(t));
}
