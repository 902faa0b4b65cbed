/* core/compile/packing/pack_intervals.h: packs live intervals into one arena (offset assignment, also known
 * as dynamic storage allocation). */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

enum { TN_INTERVAL_ALIGN = 64 };

static inline int64_t tn_interval_aligned(int64_t bytes) {
  return (bytes + TN_INTERVAL_ALIGN - 1) / TN_INTERVAL_ALIGN * TN_INTERVAL_ALIGN;
}

/* Bytes, at least one, that are live from step `first` to step `last`, both included. */
typedef struct tn_live_interval {
  int64_t bytes;
  int32_t first, last;
  int64_t offset; /* the result */
} tn_live_interval;

/* How many intervals are placed, in one order after another: a hundredth of a second, and a tenth. */
enum { TN_PACK_FEW = 1 << 13, TN_PACK_MANY = 1 << 16 };

/* When a packing is good enough. All zero: the first order is taken. */
typedef struct tn_packing_goal {
  int64_t placements; /* further orders are tried until so many intervals have been placed */
  int64_t enough;     /* or until the arena takes no more bytes than these, or than its lower bound */
  bool only_enough; /* no further order is tried where the lower bound is larger than `enough`, and few where
                       it is hardly smaller */
} tn_packing_goal;

/* Assigns offsets, multiples of TN_INTERVAL_ALIGN, so that no two intervals that are live at the same step
 * overlap. *arena is the highest end. The same intervals and goal give the same offsets; a goal that differs
 * in fewer placements alone gives no smaller arena. */
tn_status tn_intervals_pack(const void *handle, tn_live_interval *intervals, int32_t n,
                            const tn_packing_goal *goal, int64_t *arena);

/* The most bytes that are live at one step: a lower bound of every arena. */
tn_status tn_intervals_lower_bound(const void *handle, const tn_live_interval *intervals, int32_t n,
                                   int32_t n_steps, int64_t *bound);
