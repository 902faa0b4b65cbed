/* backends/onednn/openmp.c: the threads of oneDNN's primitives, which are libgomp's. Loops of Tenon's own
 * kernels run on the team of the device (tn_parallel). OMP_WAIT_POLICY and GOMP_SPINCOUNT control how
 * libgomp's threads wait. */
#include <errno.h>
#include <omp.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/onednn/onednn.h"

/* ThreadSanitizer does not instrument libgomp, so it does not see its synchronization. A build with it runs
 * oneDNN's primitives on one thread. */
#ifdef __SANITIZE_THREAD__
enum { USE_LIBGOMP = 0 };
#else
enum { USE_LIBGOMP = 1 };
#endif

/* ---- fork ---- */

/* libgomp keeps the threads of a team for the next one. The child of fork() would have the record of them
 * without the threads, and its first team would wait for them. So the forking thread ends its threads before;
 * its next team starts others. */
static void openmp_end_threads(void) {
  if (!omp_in_parallel()) omp_pause_resource_all(omp_pause_soft);
}

/* Once for the process, when the plugin is loaded. */
__attribute__((constructor)) static void openmp_prepare_forks(void) {
  if (USE_LIBGOMP) pthread_atfork(openmp_end_threads, NULL, NULL);
}

/* ---- starting ---- */

/* The stack of libgomp's threads: "16M" in the environment, in KiB without a unit; 0: the system's default.
 */
static size_t openmp_stack_bytes(void) {
  static const char units[] = "bkmg";
  const char *text = getenv("OMP_STACKSIZE");
  if (text == NULL) text = getenv("GOMP_STACKSIZE");
  if (text == NULL) return 0;
  char *end = NULL;
  unsigned long long number = strtoull(text, &end, 10);
  const char *unit = *end != '\0' ? strchr(units, *end | 32) : NULL;
  int shift = unit == NULL ? 10 : 10 * (int)(unit - units);
  return number < (1ull << 32) ? (size_t)number << shift : 0;
}

static void *openmp_await_end(void *arg) {
  while (sem_wait(arg) != 0 && errno == EINTR) continue;
  return NULL;
}

/* Starts threads until `n` wait for `end`; returns their number. *error: why the next one did not start. They
 * block all signals, so the application's threads handle them. */
static int32_t openmp_start_waiting(pthread_t *threads, int32_t n, sem_t *end, int *error) {
  pthread_attr_t attributes;
  sigset_t all, before;
  size_t stack = openmp_stack_bytes();
  int32_t started = 0;
  *error = pthread_attr_init(&attributes);
  if (*error != 0) return 0;
  if (stack > 0) pthread_attr_setstacksize(&attributes, stack);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started < n && *error == 0) {
    *error = pthread_create(&threads[started], &attributes, openmp_await_end, end);
    if (*error == 0) started++;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}

/* One thread more than libgomp starts, which leaves room for what libgomp allocates. */
static tn_status openmp_try_threads(tn_env *env, int32_t threads) {
  sem_t end;
  int error = 0;
  pthread_t *list = tn_new(env, (size_t)threads * sizeof *list);
  if (list == NULL) return TN_ENOMEM;
  sem_init(&end, 0, 0);
  int32_t started = openmp_start_waiting(list, threads, &end, &error);
  for (int32_t i = 0; i < started; i++) sem_post(&end);
  for (int32_t i = 0; i < started; i++) pthread_join(list[i], NULL);
  sem_destroy(&end);
  tn_delete(env, list);
  if (started == threads) return TN_OK;
  return tn_fail(
      env, TN_EUNAVAILABLE, "threads",
      "onednn: of %d threads for oneDNN only %d can start (%s), beside those of the device; ask for "
      "fewer, or raise the limit of address space (ulimit -v) or of processes (ulimit -u)",
      threads, started, strerror(error));
}

/* Whether the calling thread has another floating-point environment than the default. */
static bool openmp_has_other_environment(void) {
#if defined(__x86_64__)
  enum { FLAGS = 0x3f, DEFAULT = 0x1f80 };
  return (__builtin_ia32_stmxcsr() & ~(unsigned)FLAGS) != DEFAULT;
#elif defined(__aarch64__)
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control != 0;
#else
  return fegetround() != FE_TONEAREST;
#endif
}

/* libgomp starts threads that the calling thread does not have yet. Those inherit its floating-point
 * environment, which the host has set to the default, and its mask of signals. The others are threads of the
 * application's own parallel regions. True: some of these have another environment. */
static bool openmp_start_team(int32_t threads) {
  sigset_t all, before;
  bool other = false;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#pragma omp parallel num_threads(threads) reduction(|| : other)
  other = openmp_has_other_environment();
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return other;
}

tn_status tn_onednn_start_threads(tn_env *env, tn_onednn *backend, int32_t threads) {
  if (!USE_LIBGOMP || threads <= 1 || omp_in_parallel()) return TN_OK;
  if (backend->started >= threads && pthread_equal(backend->starter, pthread_self())) return TN_OK;
  TN_TRY(openmp_try_threads(env, threads));
  backend->started = threads;
  backend->starter = pthread_self();
  tn_delete(env, backend->environments);
  backend->environments = NULL;
  if (!openmp_start_team(threads)) return TN_OK;
  backend->environments = tn_new(env, (size_t)threads * sizeof *backend->environments);
  return backend->environments != NULL ? TN_OK : TN_ENOMEM;
}

/* The launching thread, number 0, has the default by the host. */
void tn_onednn_enter_environment(const tn_onednn *backend, int32_t threads) {
  if (backend->environments == NULL || threads <= 1 || omp_in_parallel()) return;
#pragma omp parallel num_threads(threads)
  {
    fegetenv(&backend->environments[omp_get_thread_num()]);
    fesetenv(FE_DFL_ENV);
  }
}

void tn_onednn_leave_environment(const tn_onednn *backend, int32_t threads) {
  if (backend->environments == NULL || threads <= 1 || omp_in_parallel()) return;
#pragma omp parallel num_threads(threads)
  fesetenv(&backend->environments[omp_get_thread_num()]);
}

/* ---- binding ---- */

/* Binds the calling thread of a team, unless it is bound already. libgomp ends threads that a smaller team
 * does not need and starts new ones for the next larger team; these inherit the binding of the launching
 * thread. So every launch binds its threads. */
static void openmp_bind_thread(const tn_ints *pin) {
  cpu_set_t now, one;
  int number = omp_get_thread_num();
  if (number == 0 || number >= pin->n || pin->v[number] >= CPU_SETSIZE) return;
  CPU_ZERO(&one);
  CPU_SET((size_t)pin->v[number], &one);
  if (sched_getaffinity(0, sizeof now, &now) != 0 || CPU_EQUAL(&now, &one)) return;
  sched_setaffinity(0, sizeof one, &one);
}

void tn_onednn_bind_threads(const void *backend, int32_t threads) {
  tn_ints pin = tn_onednn_options_of(backend).pin;
  if (!USE_LIBGOMP || pin.n == 0 || threads <= 1 || omp_in_parallel()) return;
#pragma omp parallel num_threads(threads)
  openmp_bind_thread(&pin);
}

void tn_onednn_unbind_threads(const void *backend) {
  tn_ints pin = tn_onednn_options_of(backend).pin;
  cpu_set_t all;
  if (!USE_LIBGOMP || pin.n <= 1) return;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
#pragma omp parallel num_threads((int)pin.n)
  sched_setaffinity(0, sizeof all, &all);
}

tn_status tn_onednn_check_pin(tn_env *env, const tn_ints *pin) {
  static const char *const variables[] = {"GOMP_CPU_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND"};
  for (int i = 0; pin->n > 0 && i < 3; i++) {
    const char *value = getenv(variables[i]);
    if (value == NULL || *value == '\0' || strcmp(value, "false") == 0) continue;
    return tn_fail(env, TN_EINVAL, "pin",
                   "onednn: %s=%s in the environment binds the same threads; leave out one of the two",
                   variables[i], value);
  }
  return TN_OK;
}

int32_t tn_onednn_use_threads(int32_t threads) {
  int32_t before = omp_get_max_threads();
  if (!USE_LIBGOMP) threads = 1;
  if (threads > 0 && threads != before) omp_set_num_threads(threads);
  return before;
}
