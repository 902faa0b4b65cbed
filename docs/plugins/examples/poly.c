/* A schedule: the learning rate is a power of the remaining part of the run. `[schedule] type = poly`. */
#include <math.h>

#include <tenon/plugin/schedule.h>

struct poly {
  double power;
};
static const tn_option options[] = {TN_OPT(struct poly, power, TN_OPT_FLOAT, "0.9", "> 0", "exponent"),
                                    TN_OPT_END};

static double factor(const void *given, const tn_schedule_at *at) {
  const struct poly *o = given;
  if (at->steps <= 0) return 1.0;
  double left = 1.0 - (double)at->step / (double)at->steps;
  return left > 0 ? pow(left, o->power) : 0.0;
}

static const tn_schedule poly = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "poly",
                                                 "a power of the share that is left", struct poly, options),
                                 .factor = factor};

TN_PLUGIN(poly, "1.0", "MIT", &poly.item)
