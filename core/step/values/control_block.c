/* core/step/values/control_block.c: writes the iteration and the scheduled options into the control block
 * of a slot. */
#include "core/step/values/control_block.h"

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

/* The factor of a step whose update has another number of samples. */
static double control_block_by_batch(const tn_scheduled_option *option, const tn_step_position *at) {
  if (option->samples == 0 || at->points == NULL || at->plain) return 1;
  return tn_lr_by_batch((double)at->samples / (double)option->samples, option->rule);
}

static void control_block_write_option(const tn_scheduled_option *option, const tn_step_position *now,
                                       float *values) {
  tn_step_position at = *now;
  double by_batch = control_block_by_batch(option, now);
  at.step += option->ahead;
  for (int32_t g = 0; values && g < option->n; g++)
    values[g] = (float)(option->is_factor
                            ? tn_schedule_factor(option->schedules[g], &at)
                            : by_batch * tn_schedule_value(option->schedules[g], option->values[g], &at));
}

void tn_control_block_write(const tn_control_block *c, int32_t slot, int64_t block,
                            const tn_step_position *at) {
  const tn_update_info *info = c->info;
  if (c->iteration[slot]) *c->iteration[slot] = at->step;
  if (c->block[slot]) *c->block[slot] = block;
  for (int32_t i = 0; i < info->n_scheduled; i++)
    control_block_write_option(&info->scheduled[i], at, c->values[slot * info->n_scheduled + i]);
}

double tn_control_block_lr(const tn_control_block *c, const tn_step_position *at) {
  if (c->lr < 0) return 0;
  const tn_scheduled_option *lr = &c->info->scheduled[c->lr];
  return control_block_by_batch(lr, at) * tn_schedule_value(lr->schedules[0], c->base_lr, at);
}
