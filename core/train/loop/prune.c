/* core/train/loop/prune.c: [prune] in the course of a run: when weights are chosen to be zero, and how many.
 */
#include <math.h>

#include "core/step/update/pruning.h"
#include "core/train/loop/training.h"

/* [prune] first, last and every, in steps. */
typedef struct prune_times {
  int64_t first, last, every;
} prune_times;

static prune_times prune_times_of(const tn_training *t) {
  const tn_prune_section *o = &t->run->settings.prune.section;
  int64_t unit = o->unit == TN_PRUNE_EPOCHS ? t->steps_per_epoch : 1;
  return (prune_times){o->first * unit, o->last * unit, o->every * unit};
}

int64_t tn_training_next_prune(const tn_training *t, int64_t step) {
  const prune_times at = prune_times_of(t);
  int64_t last = at.last > at.first ? at.last : at.first;
  if (!t->run->settings.prune.given || step > last) return INT64_MAX;
  if (step <= at.first) return at.first;
  int64_t next = at.first + (step - at.first + at.every - 1) / at.every * at.every;
  return next < last ? next : last;
}

/* sparsity + (initial - sparsity) (1 - done)^3 */
static float prune_goal(const tn_training *t) {
  const tn_prune_section *o = &t->run->settings.prune.section;
  const prune_times at = prune_times_of(t);
  if (at.last <= at.first) return (float)o->sparsity;
  double left = 1 - (double)(t->progress.step - at.first) / (double)(at.last - at.first);
  return (float)(o->sparsity + (o->initial - o->sparsity) * left * left * left);
}

bool tn_training_prunes(const tn_training *t) {
  bool over = t->progress.batch >= t->steps_per_epoch; /* validation comes first */
  return !over && tn_training_next_prune(t, t->progress.step) == t->progress.step;
}

tn_status tn_training_prune(tn_training *t) {
  return tn_programs_prune(&t->set, t->executor, prune_goal(t));
}

double tn_training_sparsity(const tn_training *t) {
  float made = 0;
  if (!t->run->settings.prune.given) return -1;
  return tn_executor_read(t->executor, TN_PRUNE_MADE, &made, sizeof made) == TN_OK ? (double)made : -1;
}
