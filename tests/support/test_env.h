/* tests/support/test_env.h: an env for tests of single rooms. It records the log, and its allocator counts
 * live blocks and can refuse requests. Its table of host functions is NULL: set env.api in tests that call
 * plugins. */
#pragma once

#include "core/base/env.h"

typedef struct test_env {
  tn_env env; /* first member, so that a test_env is a handle */
  tn_error_record record;
  int64_t live;      /* blocks that were not released yet */
  int64_t asked;     /* allocations so far */
  int64_t fail_at;   /* number of the first refused allocation; 0: none */
  char log[8192];    /* all lines logged, each ended by a newline */
  int32_t log_level; /* of the last line */
} test_env;

/* The test_env must not be moved afterwards. */
void test_env_start(test_env *t);

/* Lets n more allocations succeed and refuses all later ones; n = -1 refuses none. */
void test_env_allow(test_env *t, int64_t n);

/* The allocator and the log sink, with a test_env as their context. */
void *test_env_realloc(void *context, void *block, size_t bytes);
void test_env_log(void *context, int32_t level, const char *line);

/* Runs `work` repeatedly, each time with one more successful allocation, until it succeeds. Returns how
 * many runs failed, or -1 if a run failed with another status than TN_ENOMEM, without its text, or leaked. */
int64_t test_env_starve(tn_status (*work)(test_env *t, void *context), void *context);
