/* backends/onednn/team.c: parallel loops on libgomp's threads, so that a step has one team, not two that spin
 * against each other. Waiting and sleeping is libgomp's business (OMP_WAIT_POLICY, GOMP_SPINCOUNT). */
#include <omp.h>

#include "onednn.h"

/* ThreadSanitizer does not see how libgomp's threads wait for each other. In a build with it the cpu's own
 * team takes the place of this one, and oneDNN's primitives have one thread. */
#ifdef __SANITIZE_THREAD__
enum { SEEN = 0 };
#else
enum { SEEN = 1 };
#endif

/* A chunk writes its own part, so who runs it does not show in the result. */
void tn_onednn_parallel(void *backend, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg) {
  int64_t asked = tn_onednn_options_of(backend).threads;
  int threads = !SEEN ? 1 : asked > 0 ? (int)asked : omp_get_max_threads();
  if (chunks <= 1 || threads == 1 || omp_in_parallel()) {
    for (int64_t i = 0; i < chunks; i++) body(arg, i);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t i = 0; i < chunks; i++) body(arg, i);
}

void tn_onednn_use_threads(int32_t threads) {
  if (!SEEN) threads = 1;
  if (threads > 0 && threads != omp_get_max_threads()) omp_set_num_threads(threads);
}
