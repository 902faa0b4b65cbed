/* plugins/schedules/schedules.c: the factors of the learning rate: constant, cosine (Loshchilov and Hutter,
 * ICLR 2017, without restarts) and step. */
#include <math.h>

#include "tenon/plugin/schedule.h"

static double constant_factor(const void *options, const tn_schedule_at *at) {
  (void)options, (void)at;
  return 1.0;
}
static const tn_schedule constant = {
    .item = TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, "constant", "a constant learning rate"),
    .factor = constant_factor};

typedef struct cosine_options {
  double floor;
  int64_t steps;
} cosine_options;
static const tn_option cosine_rows[] = {
    TN_OPT(cosine_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "factor at the end"),
    TN_OPT(cosine_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"), TN_OPT_END};

/* Decreases along half a cosine from the end of the warm-up to the last step. */
static double cosine_factor(const void *given, const tn_schedule_at *at) {
  const cosine_options *o = given;
  int64_t steps = o->steps > 0 ? o->steps : at->steps;
  if (steps <= at->warmup) return 1.0;
  double done = (double)(at->step - at->warmup) / (double)(steps - at->warmup);
  done = done < 0.0 ? 0.0 : done > 1.0 ? 1.0 : done;
  return o->floor + (1.0 - o->floor) * 0.5 * (1.0 + cos(3.14159265358979323846 * done));
}
static const tn_schedule cosine = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "cosine",
                                                   "decreases along half a cosine to a floor", cosine_options,
                                                   cosine_rows),
                                   .factor = cosine_factor};

typedef struct step_options {
  double gamma;
  int64_t every_epochs, every_steps;
} step_options;
static const tn_option step_rows[] = {
    TN_OPT(step_options, gamma, TN_OPT_FLOAT, "0.1", "> 0", "factor of each drop"),
    TN_OPT(step_options, every_epochs, TN_OPT_INT, "0", ">= 0",
           "epochs between drops; 0: 30 epochs, or every_steps"),
    TN_OPT(step_options, every_steps, TN_OPT_INT, "0", ">= 0", "steps between drops; 0: every_epochs"),
    TN_OPT_END};

/* Steps between drops; INT64_MAX where the product does not fit. */
static int64_t step_distance(const step_options *o, const tn_schedule_at *at) {
  if (o->every_steps > 0) return o->every_steps;
  int64_t epochs = o->every_epochs > 0 ? o->every_epochs : 30;
  int fits = at->steps_per_epoch <= 0 || epochs <= INT64_MAX / at->steps_per_epoch;
  return fits ? epochs * at->steps_per_epoch : INT64_MAX;
}

static tn_status step_check(tn_env *env, const void *given) {
  const step_options *o = given;
  if (o->every_steps == 0 || o->every_epochs == 0) return TN_OK;
  return tn_fail(env, TN_EINVAL, "every_epochs",
                 "every_epochs = %lld and every_steps = %lld, expected one of them",
                 (long long)o->every_epochs, (long long)o->every_steps);
}

static double step_factor(const void *given, const tn_schedule_at *at) {
  const step_options *o = given;
  int64_t every = step_distance(o, at);
  return every > 0 ? pow(o->gamma, (double)(at->step / every)) : 1.0;
}
static const tn_schedule step = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "step",
                                                 "multiplied by a factor at regular intervals", step_options,
                                                 step_rows),
                                 .factor = step_factor,
                                 .check = step_check};

TN_PLUGIN(schedules, "0.1.0", "MIT", &constant.item, &cosine.item, &step.item)
