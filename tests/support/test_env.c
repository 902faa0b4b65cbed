/* tests/support/test_env.c: see test_env.h. */
#include "support/test_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *test_env_realloc(void *context, void *block, size_t bytes) {
  test_env *t = context;
  if (bytes == 0) {
    t->live -= block != NULL;
    free(block);
    return NULL;
  }
  t->asked++;
  if (t->fail_at > 0 && t->asked >= t->fail_at) return NULL;
  void *grown = realloc(block, bytes);
  t->live += block == NULL && grown != NULL;
  /* Fills new memory with a pattern, so that code which relies on zeros from tn_resize fails. */
  if (block == NULL && grown != NULL) memset(grown, 0xA5, bytes);
  return grown;
}

void test_env_log(void *context, int32_t level, const char *line) {
  test_env *t = context;
  size_t n = strlen(t->log);
  snprintf(t->log + n, sizeof(t->log) - n, "%s\n", line);
  t->log_level = level;
}

void test_env_start(test_env *t) {
  memset(t, 0, sizeof(*t));
  tn_error_record_init_root(&t->env, &t->record, NULL);
  t->record.allocator = (tn_allocator){.context = t, .realloc = test_env_realloc};
  t->record.sink = (tn_log_sink){.context = t, .write = test_env_log, .level = TN_LOG_DEBUG};
}

void test_env_allow(test_env *t, int64_t n) { t->fail_at = n < 0 ? 0 : t->asked + n + 1; }

int64_t test_env_starve(tn_status (*work)(test_env *t, void *context), void *context) {
  for (int64_t failed = 0;; failed++) {
    test_env t;
    test_env_start(&t);
    t.fail_at = failed + 1;
    tn_status status = work(&t, context);
    if (t.live != 0) {
      fprintf(stderr, "allocation %lld refused: %lld blocks leak\n", (long long)t.fail_at, (long long)t.live);
      return -1;
    }
    if (status == TN_OK) return failed;
    if (status != TN_ENOMEM || strstr(tn_error_text(&t), "out of memory") == NULL) {
      fprintf(stderr, "allocation %lld refused: status %d, %s\n", (long long)t.fail_at, status,
              tn_error_text(&t));
      return -1;
    }
  }
}
