/* core/compile/memory/pack_intervals.h: packs buffers with lifetimes into one arena. */
#ifndef TN_CORE_COMPILE_MEMORY_PACK_INTERVALS_H
#define TN_CORE_COMPILE_MEMORY_PACK_INTERVALS_H

#include "core/base/env.h"

/* Bytes that are needed from step `first` to step `last`, both included. */
typedef struct tn_interval {
  int64_t bytes;
  int32_t first, last;
  int64_t offset; /* the answer */
} tn_interval;

/* Assigns offsets, multiples of 64, so that no two intervals share bytes at a step. *arena is the
 * highest end. */
tn_status tn_offsets_assign(const void *handle, tn_interval *intervals, int32_t n, int64_t *arena);

/* The most bytes that are live at one step: no assignment can need fewer. */
tn_status tn_offsets_bound(const void *handle, const tn_interval *intervals, int32_t n, int32_t n_steps,
                           int64_t *bound);

#endif
