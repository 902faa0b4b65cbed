/* core/step/values/control_block.c: writes the iteration and the scheduled options into the control block
 * of a slot. */
#include "core/step/values/control_block.h"

double tn_learning_rate_factor(const tn_settings *settings, int64_t step, int64_t steps,
                               int64_t steps_per_epoch, const double *state) {
  int64_t warmup = settings->schedule.warmup;
  tn_schedule_at at = {sizeof at, step, steps, steps_per_epoch, warmup, state};
  double ramp = step < warmup ? ((double)step + 1.0) / ((double)warmup + 1.0) : 1.0;
  return ramp * settings->schedule_kind->factor(settings->schedule_options, &at);
}

static void control_block_bind_slot(tn_control_block *c, tn_executor *executor, int32_t index, int32_t slot) {
  c->iteration[slot] = tn_executor_input(executor, index, slot, TN_ITERATION_INPUT);
  c->block[slot] = tn_executor_input(executor, index, slot, TN_BLOCK_INPUT);
  for (int32_t i = 0; i < c->info->n_scheduled; i++)
    c->values[slot * c->info->n_scheduled + i] =
        tn_executor_input(executor, index, slot, c->info->scheduled[i].input);
}

tn_status tn_control_block_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                                const tn_update_info *info, tn_control_block *c) {
  size_t n = (size_t)slots, values = tn_size_mul(n, (size_t)info->n_scheduled + 1);
  *c = (tn_control_block){.info = info, .lr = -1};
  c->iteration = tn_arena_alloc(arena, tn_size_mul(n, sizeof *c->iteration));
  c->block = tn_arena_alloc(arena, tn_size_mul(n, sizeof *c->block));
  c->values = tn_arena_alloc(arena, tn_size_mul(values, sizeof *c->values));
  if (c->iteration == NULL || c->block == NULL || c->values == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < info->n_scheduled; i++)
    if (tn_text_equal(info->scheduled[i].name, "lr")) c->lr = i;
  if (c->lr >= 0) c->base_lr = info->scheduled[c->lr].values[0];
  for (int32_t s = 0; s < slots; s++) control_block_bind_slot(c, executor, index, s);
  return TN_OK;
}

void tn_control_block_write(const tn_control_block *c, int32_t slot, int64_t step, int64_t block,
                            double lr_factor) {
  const tn_update_info *info = c->info;
  if (c->iteration[slot]) *c->iteration[slot] = step;
  if (c->block[slot]) *c->block[slot] = block;
  for (int32_t i = 0; i < info->n_scheduled; i++) {
    float *values = c->values[slot * info->n_scheduled + i];
    double factor = i == c->lr ? lr_factor : 1.0;
    for (int32_t g = 0; values && g < info->n_groups; g++)
      values[g] = (float)(info->scheduled[i].values[g] * factor);
  }
}
