#include "core/train/loop/judge.h"

#include <math.h>

/* The position of the judged number among "loss" and the measures. */
static int32_t judge_choose(const tn_training *t, const tn_metric_sums *sums) {
  const char *best = t->run->settings.run.best;
  int32_t chosen = 0; /* the loss */
  for (int32_t i = sums->n_means - 1; i > 0; i--)
    if (*best ? tn_text_equal(sums->means[i].name, best) : !sums->told[i]->is_loss) chosen = i;
  return chosen;
}

/* Unless told otherwise, larger is better for metrics that do not say the contrary, smaller for losses. */
static bool judge_prefers_smaller(const tn_training *t, const tn_measure *measure) {
  int32_t mode = t->run->settings.run.best_mode;
  if (mode != TN_BEST_AUTO) return mode == TN_BEST_MIN;
  return measure == NULL || measure->falls;
}

/* A number that is not finite is never the best. */
static bool judge_improves(double value, double before, bool smaller, double by) {
  if (!isfinite(value)) return false;
  return isnan(before) || (smaller ? value < before - by : value > before + by);
}

tn_metric_sums *tn_training_judged(tn_training *t) {
  tn_metric_sums *sums = t->valid != NULL ? &t->valid_sums : &t->epoch_sums;
  return sums->steps > 0 ? sums : NULL;
}

bool tn_training_judge(tn_training *t) {
  tn_metric_sums *judged = tn_training_judged(t);
  tn_progress *p = &t->progress;
  p->score = NAN;
  if (judged == NULL) return false;
  const tn_metric *metrics = tn_metric_sums_means(judged);
  int32_t chosen = judge_choose(t, judged);
  double value = metrics[chosen].value;
  bool smaller = judge_prefers_smaller(t, judged->told[chosen]);
  bool improves = judge_improves(value, p->improved, smaller, t->run->settings.run.min_delta);
  bool best = judge_improves(value, p->best, smaller, 0);
  p->score = isfinite(value) ? value : (double)NAN;
  t->smaller_is_better = smaller;
  p->waited = improves ? 0 : p->waited + 1;
  if (improves) p->improved = value;
  if (best) p->best = value;
  return best;
}

bool tn_training_reached_target(tn_training *t) {
  const tn_settings *s = &t->run->settings;
  tn_metric_sums *judged = tn_training_judged(t);
  if (s->target_metric == NULL || judged == NULL) return false;
  const tn_metric *metrics = tn_metric_sums_means(judged);
  for (int32_t i = 0; i < judged->n_means; i++) {
    if (!tn_text_equal(metrics[i].name, s->target_metric)) continue;
    bool falls = judged->told[i] == NULL || judged->told[i]->falls;
    return falls ? metrics[i].value <= s->target_value : metrics[i].value >= s->target_value;
  }
  return false;
}

bool tn_training_out_of_patience(const tn_training *t) {
  int64_t patience = t->run->settings.run.patience;
  return patience > 0 && t->progress.waited >= patience;
}
