/* backends/onednn/team.c: parallel loops on libgomp's threads, which oneDNN's primitives use, too; two teams
 * would spin against each other. OMP_WAIT_POLICY and GOMP_SPINCOUNT control waiting. */
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "backends/onednn/onednn.h"

/* ThreadSanitizer does not instrument libgomp, so it does not see its synchronization. A build with it uses
 * the team of `cpu` for loops, and one thread for oneDNN's primitives. */
#ifdef __SANITIZE_THREAD__
enum { USE_LIBGOMP = 0 };
#else
enum { USE_LIBGOMP = 1 };
#endif

/* ---- binding ------------------------------------------------------------------------------------ */

/* Binds the calling thread of a team, unless it is bound already. libgomp ends threads that a smaller team
 * does not need and starts new ones for the next larger team; these inherit the binding of the launching
 * thread. So every loop binds its threads. */
static void team_bind_thread(const tn_ints *pin) {
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
  team_bind_thread(&pin);
}

void tn_onednn_unbind_threads(const void *backend) {
  tn_onednn_options options = tn_onednn_options_of(backend);
  cpu_set_t all;
  if (!USE_LIBGOMP || options.pin.n == 0 || options.threads <= 1) return;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
#pragma omp parallel num_threads((int)options.threads)
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

/* ---- loops --------------------------------------------------------------------------------------- */

static void team_run_bound(const tn_ints *pin, int threads, int64_t chunks,
                           void (*body)(void *arg, int64_t chunk), void *arg) {
#pragma omp parallel num_threads(threads)
  {
    team_bind_thread(pin);
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < chunks; i++) body(arg, i);
  }
}

/* Chunks write disjoint parts, so results do not depend on their assignment to threads. */
void tn_onednn_parallel(tn_env *env, void *backend, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                        void *arg) {
  (void)env;
  tn_onednn_options options = tn_onednn_options_of(backend);
  int threads = !USE_LIBGOMP ? 1 : options.threads > 0 ? (int)options.threads : omp_get_max_threads();
  if (chunks <= 1 || threads == 1 || omp_in_parallel()) {
    for (int64_t i = 0; i < chunks; i++) body(arg, i);
    return;
  }
  if (options.pin.n > 0) {
    team_run_bound(&options.pin, threads, chunks, body, arg);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t i = 0; i < chunks; i++) body(arg, i);
}

void tn_onednn_use_threads(int32_t threads) {
  if (!USE_LIBGOMP) threads = 1;
  if (threads > 0 && threads != omp_get_max_threads()) omp_set_num_threads(threads);
}
