/* core/base/thread_state.c: see the header. On x86 fegetenv and fesetenv take some hundred nanoseconds,
 * because of the x87. Almost every thread has its defaults, and then a public call costs a look at two
 * control words. */
#include "core/base/thread_state.h"

#include <langinfo.h>
#include <signal.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* All exceptions masked, rounding to nearest, denormals kept. */
enum { STATE_SSE_FLAGS = 0x3f, STATE_SSE_DEFAULT = 0x1f80, STATE_X87_DEFAULT = 0x37f };

static uint16_t thread_state_x87(void) {
  uint16_t control;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  return control;
}

/* False: the x87 has another state than the default. */
static bool thread_state_enter_fast(uint32_t *control) {
  if (thread_state_x87() != STATE_X87_DEFAULT) return false;
  *control = _mm_getcsr();
  if ((*control & ~(uint32_t)STATE_SSE_FLAGS) != STATE_SSE_DEFAULT) _mm_setcsr(STATE_SSE_DEFAULT);
  return true;
}

/* The x87 has changed only where code of others has changed it, such as a constructor of a plugin. */
static void thread_state_leave_fast(uint32_t control) {
  if (thread_state_x87() != STATE_X87_DEFAULT) fesetenv(FE_DFL_ENV);
  _mm_setcsr(control);
}
#else
static bool thread_state_enter_fast(uint32_t *control) {
  *control = 0;
  return false;
}

static void thread_state_leave_fast(uint32_t control) { (void)control; }
#endif

/* Sets the thread's locale to a copy with a decimal point. The encoding stays, for callbacks of the
 * application. Returns the locale before; 0: out of memory. */
static locale_t thread_state_set_point(void) {
  locale_t copy = duplocale(uselocale((locale_t)0));
  locale_t changed = copy != (locale_t)0 ? newlocale(LC_NUMERIC_MASK, "C", copy) : (locale_t)0;
  if (changed != (locale_t)0) return uselocale(changed);
  if (copy != (locale_t)0) freelocale(copy);
  return (locale_t)0;
}

void tn_thread_state_enter(tn_thread_state *before) {
  before->whole = !thread_state_enter_fast(&before->control);
  if (before->whole) {
    fegetenv(&before->environment);
    fesetenv(FE_DFL_ENV);
  }
  before->locale = *nl_langinfo(RADIXCHAR) != '.' ? thread_state_set_point() : (locale_t)0;
}

void tn_thread_state_leave(const tn_thread_state *before) {
  if (before->locale != (locale_t)0) {
    locale_t own = uselocale(before->locale);
    freelocale(own);
  }
  if (before->whole)
    fesetenv(&before->environment);
  else
    thread_state_leave_fast(before->control);
}

int tn_thread_start(pthread_t *thread, void *(*run)(void *), void *arg) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, run, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}
