/* core/compile/memory/pack_intervals.c: greedy by size with best fit, after Pisarchyk and Lee, "Efficient
 * memory management for deep neural net inference" (2020): large buffers first, each into the smallest gap
 * between those that live at the same time. */
#include "core/compile/memory/pack_intervals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

static int64_t aligned(int64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* Large ones first; among equals the one that starts first, so that chains of equal sizes line up. */
static int by_size(const void *left, const void *right) {
  const tn_interval *a = *(tn_interval *const *)left, *b = *(tn_interval *const *)right;
  int64_t bytes_a = aligned(a->bytes), bytes_b = aligned(b->bytes);
  if (bytes_a != bytes_b) return bytes_a > bytes_b ? -1 : 1;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* `placed` is sorted by offset. Walks over those that live together with `new` and looks at the gaps
 * between them. */
static int64_t best_gap(tn_interval *const *placed, int32_t n, const tn_interval *new) {
  int64_t want = aligned(new->bytes), end = 0, best = -1, best_gap = INT64_MAX;
  for (int32_t i = 0; i < n; i++) {
    const tn_interval *p = placed[i];
    if (p->first > new->last || p->last < new->first) continue;
    int64_t gap = p->offset - end, after = p->offset + aligned(p->bytes);
    if (gap >= want && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    if (after > end) end = after;
  }
  return best >= 0 ? best : end;
}

static void insert(tn_interval **placed, int32_t n, tn_interval *new) {
  int32_t at = n;
  while (at > 0 && placed[at - 1]->offset > new->offset) at--;
  memmove(placed + at + 1, placed + at, (size_t)(n - at) * sizeof *placed);
  placed[at] = new;
}

tn_status tn_offsets_assign(const void *handle, tn_interval *intervals, int32_t n, int64_t *arena) {
  tn_interval **sorted = tn_alloc(handle, tn_size_mul(2 * (size_t)n, sizeof *sorted));
  *arena = 0;
  if (sorted == NULL) return TN_ENOMEM;
  tn_interval **placed = sorted + n;
  for (int32_t i = 0; i < n; i++) sorted[i] = &intervals[i];
  qsort(sorted, (size_t)n, sizeof *sorted, by_size);
  for (int32_t i = 0; i < n; i++) {
    sorted[i]->offset = best_gap(placed, i, sorted[i]);
    insert(placed, i, sorted[i]);
    int64_t end = sorted[i]->offset + aligned(sorted[i]->bytes);
    if (end > *arena) *arena = end;
  }
  tn_release(handle, sorted);
  return TN_OK;
}

tn_status tn_offsets_bound(const void *handle, const tn_interval *intervals, int32_t n, int32_t n_steps,
                           int64_t *bound) {
  int64_t *change = tn_alloc(handle, ((size_t)n_steps + 1) * sizeof *change), live = 0;
  *bound = 0;
  if (change == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) {
    change[intervals[i].first] += aligned(intervals[i].bytes);
    change[intervals[i].last + 1] -= aligned(intervals[i].bytes);
  }
  for (int32_t s = 0; s < n_steps; s++) {
    live += change[s];
    if (live > *bound) *bound = live;
  }
  tn_release(handle, change);
  return TN_OK;
}
