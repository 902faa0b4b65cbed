/* core/bench/step.c: one step of a benchmark: its programs, in the order of training. */
#include "core/bench/bench.h"

/* All micro-batches are weighed before the first is differentiated, as in training. */
tn_status tn_bench_list_passes(tn_bench *b) {
  int32_t n = b->micro_batches;
  b->passes = tn_arena_alloc(&b->set.arena, 2 * (size_t)n * sizeof *b->passes);
  if (b->passes == NULL) return TN_ENOMEM;
  for (int32_t m = 0; m < n && n > 1; m++)
    b->passes[b->n_passes++] = (tn_bench_pass){TN_PROGRAM_WEIGH, m, false};
  for (int32_t m = 0; m < n - 1; m++) b->passes[b->n_passes++] = (tn_bench_pass){TN_PROGRAM_MICRO, m, true};
  b->passes[b->n_passes++] = (tn_bench_pass){b->which, n - 1, n > 1};
  return TN_OK;
}

tn_status tn_bench_launch(tn_bench *b, int32_t slot, bool again) {
  for (int32_t i = 0; i < b->n_passes; i++) {
    const tn_bench_pass *pass = &b->passes[i];
    int32_t index = b->set.index[pass->which];
    TN_TRY((pass->again || again ? tn_executor_run_again : tn_executor_run)(b->executor, index,
                                                                            slot + pass->slot));
  }
  return TN_OK;
}

tn_status tn_bench_step(tn_bench *b) {
  TN_TRY(tn_bench_launch(b, 0, false));
  for (int32_t m = 0; m < b->micro_batches; m++) TN_TRY(tn_executor_slot_wait(b->executor, m));
  return TN_OK;
}
