/* core/train/evaluate.c: one pass over data without training. */
#include "core/train/session.h"

tn_status tn_evaluate(tn_run *run, tn_executor *executor, int32_t index, tn_feeder *feeder,
                      int64_t max_batches, tn_tally *tally) {
  tn_tally_reset(tally);
  TN_TRY(tn_feeder_start(feeder, 0, 0));
  for (int64_t batch = 0; max_batches == 0 || batch < max_batches; batch++) {
    int32_t slot;
    int64_t samples;
    tn_status status = tn_feeder_next(feeder, &slot, &samples);
    if (status == TN_EOF) break;
    if (status != TN_OK) return tn_wrap(&run->env, status, "validation");
    TN_TRY(tn_executor_run(executor, index, slot));
    TN_TRY(tn_executor_slot_wait(executor, slot));
    tn_tally_add(tally, executor, index, slot, samples);
    TN_TRY(tn_feeder_return(feeder, slot));
  }
  return TN_OK;
}
