/* core/train/loop/prune.c: [prune] in the course of a run: when weights are chosen to be zero, and how many.
 */
#include <math.h>

#include "core/step/update/pruning.h"
#include "core/train/loop/training.h"

/* TN_UNIT_... of [prune] unit. */
static int32_t prune_unit(const tn_training *t) {
  return t->run->settings.prune.section.unit == TN_PRUNE_EPOCHS ? TN_UNIT_EPOCHS : TN_UNIT_STEPS;
}

/* The first step in front of which so many units of [prune] are over. */
static int64_t prune_step(const tn_training *t, int64_t units) {
  const tn_step_position at = tn_training_at(t, 0);
  return tn_position_steps(&at, units, prune_unit(t));
}

/* The last moment, in units. */
static int64_t prune_end(const tn_prune_section *o) { return o->last > o->first ? o->last : o->first; }

int64_t tn_training_next_prune(const tn_training *t, int64_t step) {
  const tn_prune_section *o = &t->run->settings.prune.section;
  if (!t->run->settings.prune.given || step > prune_step(t, prune_end(o))) return INT64_MAX;
  const tn_step_position at = tn_training_at(t, step);
  int64_t over = (int64_t)tn_position_units(&at, prune_unit(t)), units = o->first;
  if (over > o->first) units += (over - o->first) / o->every * o->every;
  for (; units < prune_end(o); units += o->every)
    if (prune_step(t, units) >= step) return prune_step(t, units);
  return prune_step(t, prune_end(o));
}

/* sparsity + (initial - sparsity) (1 - done)^3 */
static float prune_goal(const tn_training *t) {
  const tn_prune_section *o = &t->run->settings.prune.section;
  int64_t first = prune_step(t, o->first), last = prune_step(t, o->last);
  if (last <= first) return (float)o->sparsity;
  double left = 1 - (double)(t->progress.step - first) / (double)(last - first);
  return (float)(o->sparsity + (o->initial - o->sparsity) * left * left * left);
}

/* A run of fast_dev_run has one step, which says nothing of the whole run. */
tn_status tn_training_check_prune(const tn_training *t) {
  const tn_prune_setting *prune = &t->run->settings.prune;
  bool epochs = prune->section.unit == TN_PRUNE_EPOCHS;
  int64_t last = (t->steps - 1) / (epochs ? t->steps_per_epoch : 1);
  if (!prune->given || prune->section.first <= last || t->steps == 0 || t->run->settings.run.fast_dev_run)
    return TN_OK;
  return tn_failf(
      &t->run->env, TN_EINVAL,
      "%s: [prune] first = %lld %s is behind the end of the run, which has %lld steps, %lld in an "
      "epoch; expected at most %lld, or a longer run",
      tn_settings_where((tn_ini *)&t->run->ini, "prune", "first"), (long long)prune->section.first,
      epochs ? "epochs" : "steps", (long long)t->steps, (long long)t->steps_per_epoch, (long long)last);
}

bool tn_training_prunes(const tn_training *t) {
  bool over = t->progress.batch >= t->steps_per_epoch; /* validation comes first */
  return !over && tn_training_next_prune(t, t->progress.step) == t->progress.step;
}

tn_status tn_training_prune(tn_training *t) { return tn_programs_prune(&t->set, t->executor, prune_goal(t)); }

double tn_training_sparsity(const tn_training *t) {
  float made = 0;
  if (!t->run->settings.prune.given) return -1;
  return tn_executor_read(t->executor, TN_PRUNE_MADE, &made, sizeof made) == TN_OK ? (double)made : -1;
}
