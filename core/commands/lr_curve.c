/* core/commands/lr_curve.c: smoothing, divergence, and the steepest descent of losses over learning
 * rates. */
#include "core/commands/lr_curve.h"

#include <math.h>

/* Of the exponential average. A larger one follows too late: with 12 points for each power of ten, 0.98 as in
 * fastai lags behind by several powers of ten. */
static const double DECAY = 0.9;
/* The curve ends where the loss is above its least value by so many times its size. */
static const double DIVERGED = 3.0;
/* A fall below this part of the first losses is taken for noise, as is one below so many deviations of the
 * losses from their average: of 2000 curves of noise alone, 69 fall by 1 and 1 by 1.5. */
static const double LEAST_FALL = 0.02, LEAST_DEVIATIONS = 1.5;
/* Points at the start, whose average is of few losses; and neighbours on each side that a slope is of. */
enum { START = 10, REACH = 3 };

static double curve_least(const tn_lr_curve *c) {
  double least = c->v[0].smoothed;
  for (int32_t i = 1; i < c->n; i++) least = fmin(least, c->v[i].smoothed);
  return least;
}

bool tn_lr_curve_add(tn_lr_curve *c, double lr, double loss) {
  c->sum = DECAY * c->sum + (1 - DECAY) * loss;
  c->weight = DECAY * c->weight + (1 - DECAY);
  c->v[c->n++] = (tn_lr_point){lr, loss, c->sum / c->weight};
  double least = curve_least(c);
  return c->n < 2 * START || c->v[c->n - 1].smoothed <= least + DIVERGED * fabs(least);
}

/* The change of the smoothed loss around a point for a factor e of the learning rate. */
static double curve_slope(const tn_lr_curve *c, int32_t i) {
  int32_t from = i - REACH > 0 ? i - REACH : 0, to = i + REACH < c->n ? i + REACH : c->n - 1;
  return (c->v[to].smoothed - c->v[from].smoothed) / log(c->v[to].lr / c->v[from].lr);
}

/* The deviation of single losses, up to the least one, from their average. */
static double curve_deviation(const tn_lr_curve *c, int32_t least) {
  int32_t end = least > 2 * START - 1 ? least : 2 * START - 1;
  double sum = 0;
  for (int32_t i = START; i <= end; i++) {
    double apart = c->v[i].loss - c->v[i].smoothed;
    sum += apart * apart;
  }
  return sqrt(sum / (end - START + 1));
}

/* The loss before the learning rate has an effect: the mean of the first fifth. */
static double curve_first(const tn_lr_curve *c) {
  int32_t n = c->n / 5 > START ? c->n / 5 : START;
  double sum = 0;
  for (int32_t i = 0; i < n; i++) sum += c->v[i].loss;
  return sum / n;
}

tn_lr_advice tn_lr_curve_advise(const tn_lr_curve *c) {
  const tn_lr_advice none = {-1, -1};
  tn_lr_advice advice = {START, START};
  if (c->n < 2 * START) return none;
  for (int32_t i = START; i < c->n; i++)
    if (c->v[i].smoothed < c->v[advice.least].smoothed) advice.least = i;
  for (int32_t i = START; i <= advice.least; i++)
    if (curve_slope(c, i) < curve_slope(c, advice.steepest)) advice.steepest = i;
  double first = curve_first(c), fall = first - c->v[advice.least].smoothed;
  bool falls = fall > LEAST_FALL * fabs(first) && fall > LEAST_DEVIATIONS * curve_deviation(c, advice.least);
  return falls ? advice : none;
}
