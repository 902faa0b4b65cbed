/* core/step/programs/largest_batch.h: the largest batch whose plan fits a number of bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Plans for a batch and counts the bytes; false: there is no plan for it. */
typedef bool (*tn_plan_bytes_fn)(void *context, int64_t batch, int64_t *bytes);

/* The largest batch below `batch` whose plan fits `limit` bytes, where that for `batch` takes `bytes`, more
 * than the limit; 0: none fits. Memory grows with the batch, and nearly in a straight line, so three plans
 * are usual; it makes 14 at most. *certain: the batch after the result does not fit. */
int64_t tn_largest_batch(tn_plan_bytes_fn plan, void *context, int64_t batch, int64_t bytes, int64_t limit,
                         bool *certain);
