/* core/bench/step.c: one step of a benchmark: its programs, in the order of training. */
#include "core/bench/bench.h"

/* All micro-batches are weighed before the first is differentiated, as in training. All phases of [phase
 * NAME] have their turns, also those that rest in most steps. */
tn_status tn_bench_list_passes(tn_bench *b) {
  int32_t n = b->micro_batches, turns = b->which == TN_PROGRAM_STEP ? b->run->settings.n_turns : 0;
  size_t most = (size_t)n * (size_t)(turns > 0 ? turns + 1 : 2);
  b->passes = tn_arena_alloc(&b->set.arena, most * sizeof *b->passes);
  if (b->passes == NULL) return TN_ENOMEM;
  for (int32_t m = 0; m < n && n > 1; m++)
    b->passes[b->n_passes++] = (tn_bench_pass){TN_PROGRAM_WEIGH, m, false};
  for (int32_t phase = 0; phase < (turns > 0 ? turns : 1); phase++) {
    for (int32_t m = 0; m < n - 1; m++)
      b->passes[b->n_passes++] = (tn_bench_pass){tn_phase_program(TN_PROGRAM_MICRO, phase), m, true};
    int32_t step = turns > 0 ? tn_phase_program(b->which, phase) : b->which;
    b->passes[b->n_passes++] = (tn_bench_pass){step, n - 1, n > 1 || phase > 0};
  }
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
