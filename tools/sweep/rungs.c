/* tools/sweep/rungs.c: which configurations go on. Successive halving (Jamieson and Talwalkar,
 * "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016): when all have
 * reached a rung, the best 1 / factor of them go on to the next one. ASHA (Li et al., "A system for massively
 * parallel hyperparameter tuning", MLSys 2020): a configuration goes on as soon as it is among the best 1 /
 * factor of those that have reached its rung. A grid and random runs have one rung. */
#include <math.h>

#include "tools/sweep/sweep.h"

/* Some run of a configuration is still on its way to a rung. */
static bool rungs_is_coming(const sweep *s, int configuration, int rung) {
  const sweep_run *runs = &s->runs[configuration * s->repeats];
  for (int i = 0; i < s->repeats; i++)
    if (runs[i].wanted > rung && runs[i].rungs <= rung && !runs[i].ended) return true;
  return false;
}

/* The mean score at a rung of the runs that have reached it, or NaN. */
static double rungs_score(const sweep *s, int configuration, int rung) {
  const sweep_run *runs = &s->runs[configuration * s->repeats];
  double sum = 0;
  int n = 0;
  for (int i = 0; i < s->repeats; i++) {
    if (runs[i].rungs <= rung || isnan(runs[i].score[rung])) continue;
    sum += runs[i].score[rung];
    n++;
  }
  return n > 0 ? sum / n : (double)NAN;
}

/* Of equal ones, the first is taken for the better one. */
static bool rungs_is_better(const sweep *s, int a, double score_a, int b, double score_b) {
  if (score_a == score_b) return a < b;
  return s->smaller ? score_a < score_b : score_a > score_b;
}

/* Whether a configuration goes on behind a rung. */
static bool rungs_promotes(const sweep *s, int configuration, int rung) {
  double own = rungs_score(s, configuration, rung);
  int reached = 0, better = 0;
  if (isnan(own) || rungs_is_coming(s, configuration, rung)) return false;
  for (int c = 0; c < s->n_configurations; c++) {
    bool coming = rungs_is_coming(s, c, rung);
    if (coming && !s->asynchronous) return false;
    double score = coming ? (double)NAN : rungs_score(s, c, rung);
    if (isnan(score)) continue;
    reached++;
    better += c != configuration && rungs_is_better(s, c, score, configuration, own);
  }
  int kept = reached / s->factor;
  return better < (kept < 1 && !s->asynchronous ? 1 : kept);
}

/* The runs of a configuration are to reach one more rung. */
static void rungs_promote(sweep *s, int configuration, int wanted) {
  sweep_run *runs = &s->runs[configuration * s->repeats];
  for (int i = 0; i < s->repeats; i++)
    if (runs[i].wanted < wanted) runs[i].wanted = wanted;
}

static void rungs_promote_all(sweep *s) {
  for (int rung = 0; s->halves && rung < s->n_rungs - 1; rung++)
    for (int c = 0; c < s->n_configurations; c++)
      if (rungs_promotes(s, c, rung)) rungs_promote(s, c, rung + 2);
}

/* The highest rungs come first, so that good configurations are finished early. */
sweep_run *sweep_next(sweep *s) {
  sweep_run *next = NULL;
  rungs_promote_all(s);
  for (int i = 0; i < s->n; i++) {
    sweep_run *r = &s->runs[i];
    if (r->pid != 0 || r->ended || r->rungs >= r->wanted) continue;
    if (next == NULL || r->wanted > next->wanted) next = r;
  }
  return next;
}
