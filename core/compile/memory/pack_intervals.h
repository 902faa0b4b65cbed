/* core/compile/memory/pack_intervals.h: packs live intervals into one arena (offset assignment, also known as
 * dynamic storage allocation). */
#pragma once

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

/* Assigns offsets, multiples of TN_INTERVAL_ALIGN, so that no two intervals that are live at the same step
 * overlap. *arena is the highest end. */
tn_status tn_intervals_pack(const void *handle, tn_live_interval *intervals, int32_t n, int64_t *arena);

/* The most bytes that are live at one step: a lower bound of every arena. */
tn_status tn_intervals_lower_bound(const void *handle, const tn_live_interval *intervals, int32_t n,
                                   int32_t n_steps, int64_t *bound);
