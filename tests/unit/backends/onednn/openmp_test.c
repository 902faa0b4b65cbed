/* The threads of libgomp run on the processors of `pin` after teams of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fenv.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/onednn/onednn.h"
#include "tests/support/await.h"

enum { THREADS = 3 };

/* Three threads on one or two processors, so that the tests run on small machines, too. */
typedef struct rig {
  int64_t processors[THREADS];
  tn_onednn backend;
  cpu_set_t all;
  atomic_int arrived, wrong;
} rig;

static void start(rig *r) {
  memset(r, 0, sizeof *r);
  assert_int_equal(sched_getaffinity(0, sizeof r->all, &r->all), 0);
  int32_t n = 0, last = 0;
  for (int32_t i = 0; i < CPU_SETSIZE && n < THREADS; i++)
    if (CPU_ISSET(i, &r->all)) r->processors[n++] = last = i;
  while (n < THREADS) r->processors[n++] = last;
  r->backend.options = (tn_onednn_options){.pin = {THREADS, r->processors}};
}

static bool is_bound_to(int64_t processor) {
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_COUNT(&now) == 1 &&
         CPU_ISSET((size_t)processor, &now) && sched_getcpu() == processor;
}

/* Waits for the others. */
static void meet(rig *r) {
  int number = omp_get_thread_num();
  atomic_fetch_add(&r->arrived, 1);
  AWAIT(atomic_load(&r->arrived) >= THREADS);
  if (number > 0 && !is_bound_to(r->processors[number])) atomic_fetch_add(&r->wrong, 1);
}

static void run(rig *r) {
  r->arrived = 0;
  tn_onednn_bind_threads(&r->backend, THREADS);
#pragma omp parallel num_threads(THREADS)
  meet(r);
  assert_int_equal(r->arrived, THREADS);
  assert_int_equal(r->wrong, 0);
}

static void threads_are_where_they_were_asked_to_be(void **state) {
  (void)state;
  rig r;
  start(&r);
  run(&r);
  run(&r);
  tn_onednn_unbind_threads(&r.backend);
}

/* libgomp ends the threads that a smaller team does not need. */
static void threads_that_are_started_anew_go_there_too(void **state) {
  (void)state;
  rig r;
  start(&r);
  run(&r);
  atomic_int seen = 0;
#pragma omp parallel num_threads(2)
  atomic_fetch_add(&seen, 1);
  assert_int_equal(seen, 2);
  tn_onednn_bind_threads(&r.backend, THREADS);
#pragma omp parallel num_threads(THREADS)
  if (omp_get_thread_num() > 0 && !is_bound_to(r.processors[omp_get_thread_num()]))
    atomic_fetch_add(&r.wrong, 1);
  assert_int_equal(r.wrong, 0);
  run(&r);
  tn_onednn_unbind_threads(&r.backend);
}

static void the_calling_thread_is_left_as_it_is_and_the_others_are_let_go(void **state) {
  (void)state;
  rig r;
  cpu_set_t now;
  start(&r);
  run(&r);
  assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
  assert_true(CPU_EQUAL(&now, &r.all));
  tn_onednn_unbind_threads(&r.backend);
#pragma omp parallel num_threads(THREADS)
  {
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0 || !CPU_EQUAL(&mine, &r.all))
      atomic_fetch_add(&r.wrong, 1);
  }
  assert_int_equal(r.wrong, 0);
}

static tn_status quiet_fail(const void *handle, tn_status code, const char *option, const char *format, ...) {
  (void)handle, (void)format;
  assert_string_equal(option, "pin");
  return code;
}

static void what_the_environment_binds_is_not_bound_again(void **state) {
  (void)state;
  static const tn_api table = {.struct_size = sizeof table, .fail = quiet_fail};
  tn_env env = {&table, NULL};
  const int64_t processor = 0;
  const tn_ints none = {0, NULL}, one = {1, &processor};
  assert_int_equal(tn_onednn_check_pin(&env, &one), TN_OK);
  setenv("OMP_PROC_BIND", "true", 1);
  assert_int_equal(tn_onednn_check_pin(&env, &none), TN_OK);
  assert_int_equal(tn_onednn_check_pin(&env, &one), TN_EINVAL);
  setenv("OMP_PROC_BIND", "false", 1);
  assert_int_equal(tn_onednn_check_pin(&env, &one), TN_OK);
  unsetenv("OMP_PROC_BIND");
}

/* ---- what the application has in these threads ---- */

static void *heap_alloc(const void *handle, size_t bytes) {
  (void)handle;
  return calloc(1, bytes);
}
static void heap_free(const void *handle, void *block) {
  (void)handle;
  free(block);
}
static const tn_api heap = {
    .struct_size = sizeof heap, .fail = quiet_fail, .alloc = heap_alloc, .free = heap_free};

/* The threads besides the calling one that round upwards. */
static int count_upward(void) {
  atomic_int upward = 0;
#pragma omp parallel num_threads(THREADS)
  if (omp_get_thread_num() > 0 && fegetround() == FE_UPWARD) atomic_fetch_add(&upward, 1);
  return upward;
}

static void round_in_team(int rounding) {
#pragma omp parallel num_threads(THREADS)
  if (omp_get_thread_num() > 0) fesetround(rounding);
}

static void threads_of_the_application_compute_in_the_default_environment(void **state) {
  (void)state;
  tn_env env = {&heap, NULL};
  tn_onednn backend = {.started = 0};
  round_in_team(FE_UPWARD);
  assert_int_equal(tn_onednn_start_threads(&env, &backend, THREADS), TN_OK);
  assert_int_equal(count_upward(), THREADS - 1);
  tn_onednn_enter_environment(&backend, THREADS);
  assert_int_equal(count_upward(), 0);
  tn_onednn_leave_environment(&backend, THREADS);
  assert_int_equal(count_upward(), THREADS - 1);
  round_in_team(FE_TONEAREST);
  tn_delete(&env, backend.environments);
}

static void threads_with_the_default_environment_are_not_asked_again(void **state) {
  (void)state;
  tn_env env = {&heap, NULL};
  tn_onednn backend = {.started = 0};
  assert_int_equal(tn_onednn_start_threads(&env, &backend, THREADS), TN_OK);
  assert_null(backend.environments);
}

static void new_threads_block_signals(void **state) {
  (void)state;
  enum { MORE = THREADS + 2 };
  tn_env env = {&heap, NULL};
  tn_onednn backend = {.started = 0};
  atomic_int open = 0;
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, NULL, &before);
  assert_int_equal(count_upward(), 0); /* a team of THREADS is there, and no larger one */
  assert_int_equal(tn_onednn_start_threads(&env, &backend, MORE), TN_OK);
#pragma omp parallel num_threads(MORE)
  {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    if (omp_get_thread_num() >= THREADS && sigismember(&now, SIGUSR1) != 1) atomic_fetch_add(&open, 1);
  }
  pthread_sigmask(SIG_BLOCK, NULL, &after);
  assert_int_equal(open, 0);
  assert_int_equal(sigismember(&before, SIGUSR1), sigismember(&after, SIGUSR1));
}

static void the_number_of_threads_can_be_given_back(void **state) {
  (void)state;
  omp_set_num_threads(5);
  int32_t before = tn_onednn_use_threads(2);
  assert_int_equal(before, 5);
  assert_int_equal(omp_get_max_threads(), 2);
  assert_int_equal(tn_onednn_use_threads(before), 2);
  assert_int_equal(omp_get_max_threads(), 5);
}

/* libgomp's loops end at a barrier, which waits for threads that another process has preempted. */
static void own_kernels_run_on_the_team_of_the_device(void **state) {
  (void)state;
  assert_null(tn_onednn_backend.parallel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_are_where_they_were_asked_to_be),
      cmocka_unit_test(threads_that_are_started_anew_go_there_too),
      cmocka_unit_test(the_calling_thread_is_left_as_it_is_and_the_others_are_let_go),
      cmocka_unit_test(own_kernels_run_on_the_team_of_the_device),
      cmocka_unit_test(threads_of_the_application_compute_in_the_default_environment),
      cmocka_unit_test(threads_with_the_default_environment_are_not_asked_again),
      cmocka_unit_test(new_threads_block_signals),
      cmocka_unit_test(the_number_of_threads_can_be_given_back),
      cmocka_unit_test(what_the_environment_binds_is_not_bound_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
