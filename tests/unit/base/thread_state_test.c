/* The default state holds between tn_thread_state_enter and _leave; behind it the former state is back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fenv.h>
#include <signal.h>
#include <string.h>

#include "core/base/thread_state.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
static void flush_denormals(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
static unsigned control(void) { return _mm_getcsr(); }
static uint16_t x87(void) {
  uint16_t word;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  return word;
}
static void set_x87_precision(void) {
  uint16_t word = (uint16_t)(x87() & ~0x300);
  __asm__ volatile("fldcw %0" : : "m"(word));
}
#else
static void flush_denormals(void) {}
static unsigned control(void) { return 0; }
static uint16_t x87(void) { return 0; }
static void set_x87_precision(void) {}
#endif

typedef struct seen {
  int rounding, traps, flags;
  unsigned control;
  uint16_t x87;
} seen;

static seen look(void) {
  return (seen){fegetround(), fegetexcept(), fetestexcept(FE_ALL_EXCEPT), control(), x87()};
}

static void same(const seen *a, const seen *b) {
  assert_int_equal(a->rounding, b->rounding);
  assert_int_equal(a->traps, b->traps);
  assert_int_equal(a->flags, b->flags);
  assert_int_equal(a->control, b->control);
  assert_int_equal(a->x87, b->x87);
}

static void divide(void) {
  static volatile double zero = 0, quotient;
  quotient = 1 / zero;
  quotient = quotient * zero;
}

/* Raises exceptions in the default state. */
static seen compute_inside(void) {
  TN_THREAD_STATE;
  seen inside = look();
  divide();
  return inside;
}

static void check(void) {
  seen usual, before = look();
  seen inside = compute_inside(), after = look();
  fesetenv(FE_DFL_ENV);
  usual = look();
  usual.flags = inside.flags; /* those of before stay */
  usual.control = (usual.control & ~0x3fu) | (inside.control & 0x3fu);
  same(&before, &after);
  same(&inside, &usual);
}

static void every_environment_is_kept_and_the_default_holds_inside(void **state) {
  (void)state;
  fesetenv(FE_DFL_ENV);
  check();
  feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
  check();
  fesetround(FE_UPWARD);
  check();
  fesetround(FE_TOWARDZERO);
  feraiseexcept(FE_OVERFLOW);
  check();
  flush_denormals();
  check();
  set_x87_precision();
  check();
  feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  check();
}

static void round_upwards_inside(void) {
  TN_THREAD_STATE;
  fesetround(FE_UPWARD);
}

/* By code of others, such as a constructor of a plugin. */
static void a_change_inside_does_not_last(void **state) {
  (void)state;
  fesetenv(FE_DFL_ENV);
  seen before = look(), after;
  round_upwards_inside();
  after = look();
  same(&before, &after);
  set_x87_precision();
  before = look();
  round_upwards_inside();
  after = look();
  same(&before, &after);
  fesetenv(FE_DFL_ENV);
}

static tn_thread_state *entered_twice(int deep) {
  TN_THREAD_STATE;
  assert_int_equal(fegetround(), FE_TONEAREST);
  return deep > 0 ? entered_twice(deep - 1) : NULL;
}

static void blocks_nest(void **state) {
  (void)state;
  fesetround(FE_DOWNWARD);
  entered_twice(3);
  assert_int_equal(fegetround(), FE_DOWNWARD);
  fesetenv(FE_DFL_ENV);
}

/* ---- threads ---- */

static void *look_in_thread(void *to) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, NULL, &now);
  int *found = to;
  found[0] = fegetround();
  found[1] = sigismember(&now, SIGUSR1);
  return NULL;
}

static void threads_begin_with_the_default_and_without_signals(void **state) {
  (void)state;
  pthread_t thread;
  sigset_t now;
  int found[2] = {-1, -1};
  fesetround(FE_UPWARD);
  {
    TN_THREAD_STATE;
    assert_int_equal(tn_thread_start(&thread, look_in_thread, found), 0);
  }
  pthread_join(thread, NULL);
  assert_int_equal(fegetround(), FE_UPWARD);
  fesetenv(FE_DFL_ENV);
  assert_int_equal(found[0], FE_TONEAREST);
  assert_int_equal(found[1], 1);
  pthread_sigmask(SIG_BLOCK, NULL, &now);
  assert_int_equal(sigismember(&now, SIGUSR1), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_environment_is_kept_and_the_default_holds_inside),
      cmocka_unit_test(a_change_inside_does_not_last),
      cmocka_unit_test(blocks_nest),
      cmocka_unit_test(threads_begin_with_the_default_and_without_signals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
