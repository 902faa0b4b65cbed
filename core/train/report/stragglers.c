/* core/train/report/stragglers.c: times of steps, and their comparison between the ranks. */
#include "core/train/report/stragglers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/system/system.h"
#include "core/base/text/text.h"
#include "core/train/loop/training.h"

/* A device's time is estimated from so many looks at least. */
enum { LEAST_LOOKS = 50 };

/* Less is jitter of the system: a busy machine takes tenths of a millisecond from one rank. */
static const double LEAST_S = 1e-3;

/* ---- the judgment ---- */

static int straggler_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double straggler_median(double *values, int32_t n) {
  qsort(values, (size_t)n, sizeof *values, straggler_order);
  return values[(n - 1) / 2];
}

/* The median is the k-th least, found by counting, since n is small against a step. */
static double straggler_median_of_ranks(const tn_own_time *all, int32_t n) {
  for (int32_t r = 0; r < n; r++) {
    int32_t below = 0, equal = 0;
    for (int32_t i = 0; i < n; i++) {
      below += all[i].seconds < all[r].seconds;
      equal += all[i].seconds == all[r].seconds;
    }
    if (below <= (n - 1) / 2 && below + equal > (n - 1) / 2) return all[r].seconds;
  }
  return (double)NAN;
}

int32_t tn_straggler_find(const tn_own_time *all, int32_t n, double factor, double *median_s) {
  int32_t slowest = 0;
  for (int32_t r = 0; r < n; r++) {
    if (!isfinite(all[r].seconds)) return -1;
    if (all[r].seconds > all[slowest].seconds) slowest = r;
  }
  *median_s = straggler_median_of_ranks(all, n);
  double more = all[slowest].seconds - *median_s;
  return all[slowest].seconds >= factor * *median_s && more >= LEAST_S ? slowest : -1;
}

/* ---- the rank's own time ---- */

static bool straggler_is_watched(const tn_training *t) {
  return t->device->flight != NULL && t->run->settings.distributed.straggler > 1;
}

/* A synchronous device computes while its host launches. For another one the host only waits: of that time,
 * the part counts in which its device is in no collective. */
static tn_own_time straggler_own_time(tn_training *t) {
  tn_step_times *times = &t->times;
  tn_own_time own = {.seconds = straggler_median(times->took_s, times->n), .looks = LEAST_LOOKS};
  if (t->device->target.properties.host_addressable) return own;
  int64_t inside = atomic_load(&t->device->flight->inside) - times->inside;
  own.looks = atomic_load(&t->device->flight->looks) - times->looks;
  own.seconds = own.looks > 0 ? own.seconds * (1 - (double)inside / (double)own.looks) : (double)NAN;
  return own;
}

static void straggler_restart(tn_training *t) {
  t->times.looks = atomic_load(&t->device->flight->looks);
  t->times.inside = atomic_load(&t->device->flight->inside);
}

/* ---- the comparison ---- */

static void straggler_tell(tn_training *t, int32_t rank, double median_s) {
  tn_step_times *times = &t->times;
  tn_text text = tn_text_new(&t->run->env);
  tn_ranks_add_name(t->ranks, rank, &text);
  tn_text_addf(
      &text,
      " is slow: its own work in a step takes %.3g ms, that of the median rank %.3g ms (steps %lld to "
      "%lld)",
      times->all[rank].seconds * 1e3, median_s * 1e3, (long long)(t->progress.step - TN_STRAGGLER_STEPS + 1),
      (long long)t->progress.step);
  if (!text.failed) {
    tn_logf(&t->run->env, TN_LOG_WARN, "%s", text.v);
    tn_training_post(t, TN_EVENT_STRAGGLER, text.v);
  }
  tn_text_free(&text);
}

/* On rank 0. */
static void straggler_judge(tn_training *t) {
  tn_step_times *times = &t->times;
  double median_s;
  int32_t rank =
      tn_straggler_find(times->all, tn_run_ranks(t->run), t->run->settings.distributed.straggler, &median_s);
  if (rank < 0) return;
  bool again = times->named[rank] > 0 && t->progress.step - times->named[rank] < TN_STRAGGLER_AGAIN;
  if (again) return;
  times->named[rank] = t->progress.step;
  straggler_tell(t, rank, median_s);
}

static tn_status straggler_allocate(tn_training *t) {
  size_t n = (size_t)tn_run_ranks(t->run);
  if (t->times.all != NULL) return TN_OK;
  t->times.named = tn_arena_alloc(&t->set.arena, n * sizeof *t->times.named);
  t->times.all = tn_arena_alloc(&t->set.arena, n * sizeof *t->times.all);
  return t->times.all != NULL && t->times.named != NULL ? TN_OK : TN_ENOMEM;
}

/* Where a device was looked at too rarely, the looks of the next steps are added. All ranks decide alike. */
static tn_status straggler_compare(tn_training *t) {
  tn_own_time own = straggler_own_time(t);
  TN_TRY(straggler_allocate(t));
  TN_TRY(tn_ranks_all_gather(t->ranks, &t->run->env, t->run->rank, "times of the steps", &own, sizeof own,
                             t->times.all));
  for (int32_t r = 0; r < tn_run_ranks(t->run); r++)
    if (t->times.all[r].looks < LEAST_LOOKS) return TN_OK;
  if (t->run->rank == 0) straggler_judge(t);
  straggler_restart(t);
  return TN_OK;
}

/* ---- steps ---- */

void tn_training_time_step(tn_training *t) {
  if (!straggler_is_watched(t)) return;
  t->times.awaited_s = t->device->flight->awaited_s;
  t->times.start_s = tn_clock_s();
}

tn_status tn_training_timed_step(tn_training *t, int64_t steps) {
  tn_step_times *times = &t->times;
  if (!straggler_is_watched(t) || steps == 0) return TN_OK;
  double awaited_s = t->device->flight->awaited_s - times->awaited_s,
         took_s = (tn_clock_s() - times->start_s - awaited_s) / (double)steps;
  for (; steps > 0; steps--) {
    times->took_s[times->n++] = took_s;
    if (times->n < TN_STRAGGLER_STEPS) continue;
    if (times->warm) TN_TRY(straggler_compare(t));
    if (!times->warm) straggler_restart(t);
    times->warm = true;
    times->n = 0;
  }
  return TN_OK;
}
