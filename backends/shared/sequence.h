/* backends/shared/sequence.h: lengths of the sequences of a batch, for recurrences. */
#pragma once

#include "backends/shared/define_kernel.h"

/* The number of steps of a sequence. `length` NULL: all have `steps`. */
static inline int64_t tn_sequence_length(const int32_t *length, int64_t row, int64_t steps) {
  return length != NULL ? length[row] : steps;
}

/* TN_EINVAL for a length outside of 0 .. steps. */
static inline tn_status tn_check_sequence_lengths(tn_launch *l, const int32_t *length, int64_t batch,
                                                  int64_t steps) {
  for (int64_t row = 0; row < batch; row++) {
    int64_t own = tn_sequence_length(length, row, steps);
    if (own < 0 || own > steps)
      return tn_fail(l, TN_EINVAL, NULL,
                     "recurrence: length %lld of sequence %lld, expected 0 .. %lld, the number of steps",
                     (long long)own, (long long)row, (long long)steps);
  }
  return TN_OK;
}
