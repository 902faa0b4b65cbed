/* core/train/loop/control_block.c: what the host tells a step: the iteration and the scheduled options. */
#include "core/train/run.h"

#include <stdio.h>

double tn_lr_factor(const tn_settings *settings, int64_t step, int64_t steps, int64_t steps_per_epoch) {
  int64_t warmup = settings->schedule.warmup;
  tn_schedule_at at = {sizeof at, step, steps, steps_per_epoch, warmup};
  double ramp = step < warmup ? (double)(step + 1) / (double)(warmup + 1) : 1.0;
  return ramp * settings->schedule_kind->factor(settings->schedule_options, &at);
}

static void bind_slot(tn_controls *c, tn_executor *executor, int32_t index, int32_t slot) {
  c->iteration[slot] = tn_executor_input(executor, index, slot, TN_ITERATION_INPUT);
  c->block[slot] = tn_executor_input(executor, index, slot, TN_BLOCK_INPUT);
  for (int32_t i = 0; i < c->plan->n_controls; i++) {
    char name[128];
    snprintf(name, sizeof name, "control.%s", c->plan->controls[i].name);
    c->values[slot * c->plan->n_controls + i] = tn_executor_input(executor, index, slot, name);
  }
}

tn_status tn_controls_bind(tn_arena *arena, tn_executor *executor, int32_t index, int32_t slots,
                           const tn_update_plan *plan, tn_controls *c) {
  size_t n = (size_t)slots, values = tn_size_mul(n, (size_t)plan->n_controls + 1);
  *c = (tn_controls){.plan = plan, .lr = -1};
  c->iteration = tn_arena_alloc(arena, tn_size_mul(n, sizeof *c->iteration));
  c->block = tn_arena_alloc(arena, tn_size_mul(n, sizeof *c->block));
  c->values = tn_arena_alloc(arena, tn_size_mul(values, sizeof *c->values));
  if (!c->iteration || !c->block || !c->values) return TN_ENOMEM;
  for (int32_t i = 0; i < plan->n_controls; i++)
    if (tn_text_equal(plan->controls[i].name, "lr")) c->lr = i;
  if (c->lr >= 0) c->base_lr = plan->controls[c->lr].values[0];
  for (int32_t s = 0; s < slots; s++) bind_slot(c, executor, index, s);
  return TN_OK;
}

void tn_controls_write(const tn_controls *c, int32_t slot, int64_t step, int64_t block, double lr_factor) {
  const tn_update_plan *plan = c->plan;
  if (c->iteration[slot]) *c->iteration[slot] = step;
  if (c->block[slot]) *c->block[slot] = block;
  for (int32_t i = 0; i < plan->n_controls; i++) {
    float *values = c->values[slot * plan->n_controls + i];
    double factor = i == c->lr ? lr_factor : 1.0;
    for (int32_t g = 0; values && g < plan->n_groups; g++)
      values[g] = (float)(plan->controls[i].values[g] * factor);
  }
}
