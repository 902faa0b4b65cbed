/* plugins/schedules/annealing.c: cosine and polynomial, which fall to a floor until the end of the run, and
 * cosine_restarts, which falls again and again (Loshchilov and Hutter, "SGDR", ICLR 2017). */
#include <math.h>

#include "plugins/schedules/schedules.h"

double schedule_done(const tn_schedule_at *at, int64_t length) {
  int64_t steps = length > 0 ? length : at->steps;
  if (steps <= at->warmup) return 0.0;
  double done = (double)(at->step - at->warmup) / (double)(steps - at->warmup);
  return done < 0.0 ? 0.0 : done > 1.0 ? 1.0 : done;
}

double schedule_cosine(double from, double to, double done) {
  return to + (from - to) * 0.5 * (1.0 + cos(3.14159265358979323846 * done));
}

typedef struct cosine_options {
  double floor;
  int64_t steps;
} cosine_options;
static const tn_option cosine_rows[] = {
    TN_OPT(cosine_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "factor at the end"),
    TN_OPT(cosine_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"), TN_OPT_END};

static double cosine_factor(const void *given, const tn_schedule_at *at) {
  const cosine_options *o = given;
  return schedule_cosine(1.0, o->floor, schedule_done(at, o->steps));
}
const tn_schedule cosine_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "cosine",
                                                     "decreases along half a cosine to a floor",
                                                     cosine_options, cosine_rows),
                                     .example = "warmup = 500\nfloor = 0.01",
                                     .factor = cosine_factor};

typedef struct polynomial_options {
  double power, floor;
  int64_t steps;
} polynomial_options;
static const tn_option polynomial_rows[] = {
    TN_OPT(polynomial_options, power, TN_OPT_FLOAT, "1", "> 0",
           "power of the remaining part; 1: a straight line"),
    TN_OPT(polynomial_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "factor at the end"),
    TN_OPT(polynomial_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"),
    TN_OPT_END};

static double polynomial_factor(const void *given, const tn_schedule_at *at) {
  const polynomial_options *o = given;
  return o->floor + (1.0 - o->floor) * pow(1.0 - schedule_done(at, o->steps), o->power);
}
const tn_schedule polynomial_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "polynomial",
                    "decreases to a floor as a power of the remaining part of the run", polynomial_options,
                    polynomial_rows),
    .example = "power = 2",
    .factor = polynomial_factor};

typedef struct restarts_options {
  int64_t t_0, t_mult;
  double floor;
  int32_t unit;
} restarts_options;
static const tn_option restarts_rows[] = {
    TN_OPT(restarts_options, t_0, TN_OPT_INT, NULL, ">= 1", "length of the first cycle"),
    TN_OPT(restarts_options, t_mult, TN_OPT_INT, "1", ">= 1", "each cycle is so many times as long"),
    TN_OPT(restarts_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "factor at the end of a cycle"),
    SCHEDULE_UNIT(restarts_options, "unit of t_0; the factor changes with every step in both"), TN_OPT_END};

/* The part of the current cycle that is over, `at` units after the first cycle began. */
static double restarts_done(const restarts_options *o, double at) {
  double length = (double)o->t_0;
  if (o->t_mult == 1) return fmod(at, length) / length;
  for (; at >= length; length *= (double)o->t_mult) at -= length;
  return at / length;
}

static double restarts_factor(const void *given, const tn_schedule_at *at) {
  const restarts_options *o = given;
  int64_t unit = schedule_unit_steps(at, o->unit);
  if (unit == 0 || at->step <= at->warmup) return 1.0;
  return schedule_cosine(1.0, o->floor, restarts_done(o, (double)(at->step - at->warmup) / (double)unit));
}
const tn_schedule cosine_restarts_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "cosine_restarts",
                    "decreases along half a cosine to a floor, and begins again (SGDR)", restarts_options,
                    restarts_rows),
    .example = "t_0 = 10\nt_mult = 2",
    .factor = restarts_factor};
