/* core/compile/memory/pack_intervals.c: greedy by size with best fit, after Pisarchyk and Lee, "Efficient
 * memory management for deep neural net inference" (2020): in order of decreasing size, each interval gets
 * the smallest gap that fits between the intervals that are live at the same time. */
#include "core/compile/memory/pack_intervals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Larger intervals first; of equal ones that with the earlier start, so that chains of equal sizes get one
 * offset. */
static int compare_intervals(const void *left, const void *right) {
  const tn_live_interval *a = *(tn_live_interval *const *)left, *b = *(tn_live_interval *const *)right;
  int64_t bytes_a = tn_interval_aligned(a->bytes), bytes_b = tn_interval_aligned(b->bytes);
  if (bytes_a != bytes_b) return bytes_a > bytes_b ? -1 : 1;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* The offset of the smallest gap that fits. `placed` is sorted by offset. */
static int64_t best_gap_offset(tn_live_interval *const *placed, int32_t n, const tn_live_interval *new) {
  int64_t want = tn_interval_aligned(new->bytes), end = 0, best = -1, best_gap = INT64_MAX;
  for (int32_t i = 0; i < n; i++) {
    const tn_live_interval *p = placed[i];
    if (p->first > new->last || p->last < new->first) continue;
    int64_t gap = p->offset - end, after = p->offset + tn_interval_aligned(p->bytes);
    if (gap >= want && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    if (after > end) end = after;
  }
  return best >= 0 ? best : end;
}

static void insert_by_offset(tn_live_interval **placed, int32_t n, tn_live_interval *new) {
  int32_t at = n;
  while (at > 0 && placed[at - 1]->offset > new->offset) at--;
  memmove(placed + at + 1, placed + at, (size_t)(n - at) * sizeof *placed);
  placed[at] = new;
}

tn_status tn_intervals_pack(const void *handle, tn_live_interval *intervals, int32_t n, int64_t *arena) {
  tn_live_interval **sorted = tn_alloc(handle, tn_size_mul(2 * (size_t)n, sizeof *sorted));
  *arena = 0;
  if (sorted == NULL) return TN_ENOMEM;
  tn_live_interval **placed = sorted + n;
  for (int32_t i = 0; i < n; i++) sorted[i] = &intervals[i];
  qsort(sorted, (size_t)n, sizeof *sorted, compare_intervals);
  for (int32_t i = 0; i < n; i++) {
    sorted[i]->offset = best_gap_offset(placed, i, sorted[i]);
    insert_by_offset(placed, i, sorted[i]);
    int64_t end = sorted[i]->offset + tn_interval_aligned(sorted[i]->bytes);
    if (end > *arena) *arena = end;
  }
  tn_release(handle, sorted);
  return TN_OK;
}

tn_status tn_intervals_lower_bound(const void *handle, const tn_live_interval *intervals, int32_t n,
                                   int32_t n_steps, int64_t *bound) {
  int64_t *change = tn_alloc(handle, ((size_t)n_steps + 1) * sizeof *change), live = 0;
  *bound = 0;
  if (change == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    change[intervals[i].first] += tn_interval_aligned(intervals[i].bytes);
    change[intervals[i].last + 1] -= tn_interval_aligned(intervals[i].bytes);
  }
  for (int32_t s = 0; s < n_steps; s++) {
    live += change[s];
    if (live > *bound) *bound = live;
  }
  tn_release(handle, change);
  return TN_OK;
}
