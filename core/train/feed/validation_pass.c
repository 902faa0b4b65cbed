/* core/train/feed/validation_pass.c: runs the evaluation program over a feeder's data. */
#include "core/train/feed/validation_pass.h"

#include "core/exec/flight_recorder.h"

tn_status tn_validation_bind(const tn_run *run, tn_program_set *set, tn_executor *executor, int32_t slots,
                             tn_validation_program *programs) {
  const tn_settings *s = &run->settings;
  bool one = s->n_lengths == 0 || s->sizes;
  for (int32_t k = 0; k < (one ? 1 : s->n_lengths); k++) {
    tn_validation_program *p = &programs[k];
    p->index = set->index[one ? TN_PROGRAM_EVAL : tn_length_program(s, TN_PROGRAM_EVAL, k)];
    TN_TRY(tn_control_block_bind(&set->arena, executor, p->index, slots, &set->update, &p->control_block));
    TN_TRY(tn_measure_outputs_bind(&set->arena, executor, p->index, slots, set, &p->outputs));
  }
  return TN_OK;
}

tn_status tn_validation_run(tn_run *run, const tn_validation *pass, tn_metric_sums *sums) {
  tn_flight *flight = pass->ranks != NULL ? tn_ranks_flight(pass->ranks, run->rank) : NULL;
  tn_metric_sums_reset(sums);
  tn_flight_wait starting = tn_flight_begin_wait(flight, TN_FLIGHT_HOST, "its data for validation");
  tn_status started = tn_feeder_start(pass->feeder, 0, 0);
  tn_flight_end_wait(flight, &starting);
  TN_TRY(started);
  for (int64_t batch = 0; pass->max_batches == 0 || batch < pass->max_batches; batch++) {
    int32_t slot;
    int64_t samples;
    int32_t stop = atomic_load(&run->stop);
    if (pass->ranks) TN_TRY(tn_ranks_decide(pass->ranks, &run->env, run->rank, &stop));
    if (stop) return tn_failf(&run->env, TN_ESTOPPED, "stopped during validation");
    tn_flight_wait before = tn_flight_begin_wait(flight, TN_FLIGHT_HOST, "its next batch for validation");
    tn_status status = tn_feeder_next(pass->feeder, &slot, &samples);
    tn_flight_end_wait(flight, &before);
    if (status == TN_EOF) break;
    if (status != TN_OK) return tn_wrap(&run->env, status, "validation");
    const tn_validation_program *program = &pass->programs[tn_feeder_length(pass->feeder)];
    const tn_step_position at = {.step = batch, .plain = true};
    tn_control_block_write(&program->control_block, slot, run->rank, &at);
    TN_TRY(tn_executor_run(pass->executor, program->index, slot));
    TN_TRY(tn_executor_slot_wait(pass->executor, slot));
    tn_metric_sums_add(sums, &program->outputs, slot, samples);
    TN_TRY(tn_metric_sums_add_rows(sums, &program->outputs, slot));
    TN_TRY(tn_feeder_return(pass->feeder, slot));
    if (pass->progress) pass->progress(pass->context, batch + 1);
  }
  return tn_metric_sums_close(sums);
}
