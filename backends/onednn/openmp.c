/* backends/onednn/openmp.c: the threads of oneDNN's primitives, which are libgomp's. Loops of Tenon's own
 * kernels run on the team of the device (tn_parallel). OMP_WAIT_POLICY and GOMP_SPINCOUNT control how
 * libgomp's threads wait. */
#include <omp.h>
#include <sched.h>
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

void tn_onednn_use_threads(int32_t threads) {
  if (!USE_LIBGOMP) threads = 1;
  if (threads > 0 && threads != omp_get_max_threads()) omp_set_num_threads(threads);
}
