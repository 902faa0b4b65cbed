/* core/step/values/schedule_values.c: warm-up times schedule. */
#include "core/step/values/schedule_values.h"

#include <math.h>

static tn_schedule_at schedule_at(const tn_step_position *p) {
  return (tn_schedule_at){.struct_size = sizeof(tn_schedule_at),
                          .step = p->step,
                          .steps = p->steps,
                          .steps_per_epoch = p->steps_per_epoch,
                          .state = p->state,
                          .samples = p->samples,
                          .points = p->points,
                          .n_points = p->n_points};
}

double tn_position_units(const tn_step_position *position, int32_t unit) {
  const tn_schedule_at at = schedule_at(position);
  return tn_schedule_units(&at, at.step, unit);
}

int64_t tn_position_steps(const tn_step_position *position, int64_t units, int32_t unit) {
  const tn_schedule_at at = schedule_at(position);
  return tn_schedule_steps(&at, units, unit);
}

int64_t tn_schedule_warmup_steps(const tn_schedule_setting *schedule, const tn_step_position *position) {
  int64_t steps = tn_position_steps(position, schedule->section.warmup, schedule->section.warmup_unit);
  return steps > 0 ? steps : 0;
}

/* From the start at step 0 to 1 at the end of the warm-up. */
static double schedule_warm(const tn_schedule_setting *s, int64_t step, int64_t warmup) {
  static const double pi = 3.14159265358979323846;
  double done = (double)step / (double)warmup;
  double start = s->warmup_start < 0 ? 1.0 / ((double)warmup + 1.0) : s->warmup_start;
  switch (s->section.warmup_shape) {
  case TN_WARMUP_CONSTANT: return start;
  case TN_WARMUP_EXPONENTIAL: return pow(start, 1.0 - done);
  case TN_WARMUP_COSINE: return start + (1.0 - start) * 0.5 * (1.0 - cos(pi * done));
  default: return start + (1.0 - start) * done;
  }
}

double tn_schedule_factor(const tn_schedule_setting *schedule, const tn_step_position *position) {
  if (schedule == NULL || position->plain) return 1.0;
  tn_schedule_at at = schedule_at(position);
  at.warmup = tn_schedule_warmup_steps(schedule, position);
  double warm = at.step < at.warmup ? schedule_warm(schedule, at.step, at.warmup) : 1.0;
  return warm * schedule->kind->factor(schedule->options, &at);
}

double tn_schedule_value(const tn_schedule_setting *schedule, double value, const tn_step_position *at) {
  double toward = schedule != NULL ? schedule->section.toward : 0.0;
  return toward + (value - toward) * tn_schedule_factor(schedule, at);
}

static void schedule_move(const tn_moved_field *moved, double value) {
  void *field = (char *)moved->options + moved->option->offset;
  if (moved->option->type == TN_OPT_INT)
    *(int64_t *)field = llround(value);
  else
    *(double *)field = value;
}

void tn_schedules_move_transforms(const tn_settings *settings, const tn_step_position *at) {
  for (int32_t i = 0; i < settings->n_schedules; i++) {
    const tn_schedule_setting *s = &settings->schedules[i];
    for (int32_t k = 0; k < s->n_fields; k++)
      schedule_move(&s->fields[k], tn_schedule_value(s, s->fields[k].value, at));
  }
}
