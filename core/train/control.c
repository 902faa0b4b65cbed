/* core/train/control.c: what the host tells a step: the iteration and the scheduled options. */
#include "core/train/session.h"

#include <stdio.h>

double tn_lr_factor(const tn_settings *settings, int64_t step, int64_t steps, int64_t steps_per_epoch) {
  int64_t warmup = settings->schedule.warmup;
  tn_schedule_at at = {sizeof at, step, steps, steps_per_epoch, warmup};
  double ramp = step < warmup ? (double)(step + 1) / (double)(warmup + 1) : 1.0;
  return ramp * settings->schedule_kind->factor(settings->schedule_options, &at);
}

void tn_control_write(tn_executor *executor, int32_t index, int32_t slot, const tn_update_plan *plan,
                      int64_t step, double lr_factor) {
  int64_t *iteration = tn_executor_input(executor, index, slot, TN_ITERATION_INPUT);
  if (iteration) *iteration = step;
  for (int32_t i = 0; i < plan->n_controls; i++) {
    char name[128];
    snprintf(name, sizeof name, "control.%s", plan->controls[i].name);
    float *values = tn_executor_input(executor, index, slot, name);
    double factor = tn_text_equal(plan->controls[i].name, "lr") ? lr_factor : 1.0;
    for (int32_t g = 0; values && g < plan->n_groups; g++)
      values[g] = (float)(plan->controls[i].values[g] * factor);
  }
}
