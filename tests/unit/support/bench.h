/* tests/unit/support/bench.h: a handle whose log is kept and whose memory can be made to run out. */
#ifndef TN_TESTS_UNIT_SUPPORT_BENCH_H
#define TN_TESTS_UNIT_SUPPORT_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/env.h"
#include "core/plugin/handles.h"

typedef struct bench {
  tn_env env;
  tn_error_record record;
  char log[8192];
  long blocks; /* allocated and not yet given back */
  long left;   /* requests that still succeed; -1: all */
} bench;

static inline void *bench_realloc(void *context, void *block, size_t bytes) {
  bench *b = context;
  if (bytes == 0) {
    b->blocks -= block != NULL;
    free(block);
    return NULL;
  }
  if (b->left == 0) return NULL;
  if (b->left > 0) b->left--;
  b->blocks += block == NULL;
  void *grown = realloc(block, bytes);
  /* Whoever forgets that fresh memory is not zero shall notice. */
  if (block == NULL && grown != NULL) memset(grown, 0xA5, bytes);
  return grown;
}

static inline void bench_log(void *context, int32_t level, const char *line) {
  bench *b = context;
  size_t n = strlen(b->log);
  (void)level;
  snprintf(b->log + n, sizeof(b->log) - n, "%s\n", line);
}

static inline void bench_init(bench *b) {
  memset(b, 0, sizeof(*b));
  tn_error_record_init_root(&b->env, &b->record, &tn_host_api);
  b->left = -1;
  b->record.allocator = (tn_allocator){b, bench_realloc};
  b->record.sink = (tn_log_sink){b, bench_log, TN_LOG_DEBUG};
}

static inline void assert_contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static inline void assert_error(const bench *b, tn_status status, tn_status want, const char *part) {
  if (status != want) fail_msg("status %d instead of %d: %s", status, want, tn_error_text(b));
  assert_contains(tn_error_text(b), part);
}

static inline void assert_ok(const bench *b, tn_status status) {
  if (status != TN_OK) fail_msg("status %d: %s", status, tn_error_text(b));
}

#endif
