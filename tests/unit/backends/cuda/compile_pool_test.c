/* tests/unit/backends/cuda/compile_pool_test.c: threads that compile: a request to stop is not kept waiting
 * for code that compiles, and jobs that are withdrawn are not compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <string.h>

#include "backends/cuda/modules/compile_pool.h"
#include "tenon/api.h"
#include "tests/support/await.h"

static atomic_int stop, held, compiled;

static int32_t is_stopping(const void *handle) {
  (void)handle;
  return atomic_load(&stop);
}

static const tn_api api = {.stopping = is_stopping};
static const tn_env env = {&api, NULL};

/* Compiles until the test lets it go. */
static bool compile(tn_cuda_job *job) {
  AWAIT(!atomic_load(&held));
  atomic_fetch_add(&compiled, 1);
  strcpy(job->error, "no code is made");
  return false;
}

static tn_cuda_pool pool;

static int open_pool(void **state) {
  (void)state;
  pool = (tn_cuda_pool){.folder = ""};
  tn_cuda_pool_init(&pool);
  atomic_store(&stop, 0);
  atomic_store(&held, 1);
  atomic_store(&compiled, 0);
  return 0;
}

static void jobs_end(void **state) {
  (void)state;
  tn_cuda_job jobs[3] = {{.compile = compile}, {.compile = compile}, {.compile = compile}};
  for (int i = 0; i < 3; i++) tn_cuda_pool_add(&pool, &jobs[i]);
  atomic_store(&held, 0);
  for (int i = 0; i < 3; i++) assert_true(tn_cuda_pool_await(&env, &pool, &jobs[i]));
  assert_int_equal(atomic_load(&compiled), 3);
  tn_cuda_pool_free(&pool);
}

/* The code compiles for ever, as long as the test holds it. */
static void a_stop_does_not_wait_for_a_job(void **state) {
  (void)state;
  tn_cuda_job job = {.compile = compile};
  tn_cuda_pool_add(&pool, &job);
  atomic_store(&stop, 1);
  assert_false(tn_cuda_pool_await(&env, &pool, &job));
  assert_int_equal(atomic_load(&compiled), 0);
  atomic_store(&held, 0);
  tn_cuda_pool_free(&pool);
}

/* More jobs than threads: those that are in the queue are dropped, one that has begun is waited for. */
static void a_job_that_is_withdrawn_is_not_compiled(void **state) {
  (void)state;
  enum { JOBS = TN_CUDA_COMPILE_THREADS + 2 };
  static tn_cuda_job jobs[JOBS];
  for (int i = 0; i < JOBS; i++) {
    jobs[i] = (tn_cuda_job){.compile = compile};
    tn_cuda_pool_add(&pool, &jobs[i]);
  }
  tn_cuda_pool_withdraw(&pool, &jobs[JOBS - 1]);
  tn_cuda_pool_withdraw(&pool, &jobs[JOBS - 2]);
  atomic_store(&held, 0);
  for (int i = 0; i < JOBS - 2; i++) tn_cuda_pool_withdraw(&pool, &jobs[i]);
  assert_true(atomic_load(&compiled) <= JOBS - 2);
  assert_false(jobs[JOBS - 1].done || jobs[JOBS - 2].done);
  tn_cuda_pool_free(&pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(jobs_end, open_pool),
      cmocka_unit_test_setup(a_stop_does_not_wait_for_a_job, open_pool),
      cmocka_unit_test_setup(a_job_that_is_withdrawn_is_not_compiled, open_pool),
  };
  return cmocka_run_group_tests_name("compile pool", tests, NULL, NULL);
}
