/* tests/support/test_env.h: an env for tests of single rooms, with an allocator that counts what is
 * alive and can refuse. Its table of host functions is NULL: such tests call no plugin. */
#ifndef TN_TESTS_SUPPORT_TEST_ENV_H
#define TN_TESTS_SUPPORT_TEST_ENV_H

#include "core/base/env.h"

typedef struct test_env {
  tn_env env; /* first, so that a test_env is a handle */
  tn_error_record record;
  int64_t live;    /* blocks that were not released yet */
  int64_t asked;   /* allocations so far */
  int64_t fail_at; /* which of them is refused, and all after it; 0: none */
  char log[512];   /* the last line logged */
} test_env;

/* Not to be moved afterwards. */
void test_env_start(test_env *t);

/* Runs `work` again and again, each time refusing one allocation more, until it succeeds. Returns how
 * many runs failed, or -1 when one failed otherwise than with TN_ENOMEM and its text, or leaked. */
int64_t test_env_starve(tn_status (*work)(test_env *t, void *context), void *context);

#endif
