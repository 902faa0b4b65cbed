/* plugins/schedules/decay.c: factors that multiply at certain times: step, multistep and exponential. */
#include <math.h>

#include "plugins/schedules/schedules.h"

tn_status schedule_check_milestones(tn_env *env, const tn_ints *list) {
  for (int64_t i = 1; i < list->n; i++)
    if (list->v[i] <= list->v[i - 1])
      return tn_fail(env, TN_EINVAL, "milestones",
                     "milestones: %lld comes after %lld, expected ascending numbers", (long long)list->v[i],
                     (long long)list->v[i - 1]);
  return TN_OK;
}

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

/* The drops so far. */
static double step_drops(const step_options *o, const tn_schedule_at *at) {
  if (o->every_steps > 0) return (double)(at->step / o->every_steps);
  int64_t epochs = o->every_epochs > 0 ? o->every_epochs : 30;
  if (at->points) return floor(tn_schedule_units(at, at->step, TN_UNIT_EPOCHS) / (double)epochs);
  int64_t every = tn_schedule_steps(at, epochs, TN_UNIT_EPOCHS);
  return every > 0 ? (double)(at->step / every) : 0.0;
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
  return pow(o->gamma, step_drops(o, at));
}
const tn_schedule step_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "step",
                                                   "multiplied by a factor at regular intervals",
                                                   step_options, step_rows),
                                   .example = "every_epochs = 30\ngamma = 0.1",
                                   .factor = step_factor,
                                   .check = step_check};

typedef struct multistep_options {
  tn_ints milestones;
  double gamma;
  int32_t unit;
} multistep_options;
static const tn_option multistep_rows[] = {
    TN_OPT(multistep_options, milestones, TN_OPT_INTS, NULL, ">= 1", "when it drops, in ascending order"),
    TN_OPT(multistep_options, gamma, TN_OPT_FLOAT, "0.1", "> 0", "factor of each drop"),
    SCHEDULE_UNIT(multistep_options, "unit of the milestones"), TN_OPT_END};

static tn_status multistep_check(tn_env *env, const void *given) {
  return schedule_check_milestones(env, &((const multistep_options *)given)->milestones);
}

static double multistep_factor(const void *given, const tn_schedule_at *at) {
  const multistep_options *o = given;
  double now = tn_schedule_units(at, at->step, o->unit);
  int64_t passed = 0;
  while (passed < o->milestones.n && now >= (double)o->milestones.v[passed]) passed++;
  return pow(o->gamma, (double)passed);
}
const tn_schedule multistep_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "multistep",
                                                        "multiplied by a factor at each of the milestones",
                                                        multistep_options, multistep_rows),
                                        .example = "milestones = [30, 60, 90]",
                                        .factor = multistep_factor,
                                        .check = multistep_check};

typedef struct exponential_options {
  double gamma;
  int32_t unit;
} exponential_options;
static const tn_option exponential_rows[] = {
    TN_OPT(exponential_options, gamma, TN_OPT_FLOAT, NULL, "> 0", "factor after each unit"),
    SCHEDULE_UNIT(exponential_options, "after each epoch or after each step"), TN_OPT_END};

static double exponential_factor(const void *given, const tn_schedule_at *at) {
  const exponential_options *o = given;
  double now = tn_schedule_units(at, at->step, o->unit);
  return now > 0 ? pow(o->gamma, floor(now)) : 1.0;
}
const tn_schedule exponential_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "exponential",
                                                          "multiplied by a factor after each epoch or step",
                                                          exponential_options, exponential_rows),
                                          .example = "gamma = 0.95",
                                          .factor = exponential_factor};
