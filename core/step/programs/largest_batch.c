/* core/step/programs/largest_batch.c: a search between a batch that fits and one that does not. */
#include "core/step/programs/largest_batch.h"

enum { MOST_PLANS = 14 };

typedef struct batch_plan {
  int64_t batch, bytes;
} batch_plan;

/* Where the straight line through both plans meets the limit. A line that misses by much is not straight:
 * then the middle, which halves the rest. */
static int64_t largest_batch_guess(const batch_plan *fits, const batch_plan *large, int64_t limit,
                                   int32_t plans) {
  int64_t rest = large->batch - fits->batch;
  double share = (double)(limit - fits->bytes) / (double)(large->bytes - fits->bytes);
  int64_t guess = fits->batch + (int64_t)(share * (double)rest);
  if (plans > 4) guess = fits->batch + rest / 2;
  if (guess <= fits->batch) return fits->batch + 1;
  return guess >= large->batch ? large->batch - 1 : guess;
}

int64_t tn_largest_batch(tn_plan_bytes_fn plan, void *context, int64_t batch, int64_t bytes, int64_t limit,
                         bool *certain) {
  batch_plan fits = {1, 0}, large = {batch, bytes};
  *certain = false;
  if (batch <= 1 || !plan(context, 1, &fits.bytes) || fits.bytes > limit) return 0;
  for (int32_t plans = 1; plans < MOST_PLANS && large.batch - fits.batch > 1; plans++) {
    batch_plan next = {largest_batch_guess(&fits, &large, limit, plans), 0};
    if (!plan(context, next.batch, &next.bytes)) return fits.batch;
    if (next.bytes <= limit)
      fits = next;
    else
      large = next;
  }
  *certain = large.batch - fits.batch == 1;
  return fits.batch;
}
