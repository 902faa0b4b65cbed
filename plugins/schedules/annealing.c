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
  double floor, k_decay;
  int64_t steps;
} cosine_options;
#define COSINE_K_DECAY(S)                                                                                    \
  TN_OPT(S, k_decay, TN_OPT_FLOAT, "1", "> 0",                                                               \
         "power of the part that is over: above 1 it falls later (Zhang and Li, \"k-decay\", 2020)")
static const tn_option cosine_rows[] = {
    TN_OPT(cosine_options, floor, TN_OPT_FLOAT, "0", ">= 0", "factor at the end"),
    TN_OPT(cosine_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"),
    COSINE_K_DECAY(cosine_options), TN_OPT_END};

static double cosine_factor(const void *given, const tn_schedule_at *at) {
  const cosine_options *o = given;
  return schedule_cosine(1.0, o->floor, pow(schedule_done(at, o->steps), o->k_decay));
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
  int64_t t_0, cycles;
  double t_mult, floor, decay, k_decay;
  int32_t unit;
} restarts_options;
static const tn_option restarts_rows[] = {
    TN_OPT(restarts_options, t_0, TN_OPT_INT, NULL, ">= 1", "length of the first cycle"),
    TN_OPT(restarts_options, t_mult, TN_OPT_FLOAT, "1", ">= 1", "each cycle is so many times as long"),
    TN_OPT(restarts_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "factor at the end of a cycle"),
    SCHEDULE_UNIT(restarts_options, "unit of t_0; the factor changes with every step in all"),
    TN_OPT(restarts_options, decay, TN_OPT_FLOAT, "1", "(0, 1]", "each cycle begins so many times as high"),
    TN_OPT(restarts_options, cycles, TN_OPT_INT, "0", ">= 0",
           "number of cycles, after which the factor is floor; 0: no limit"),
    COSINE_K_DECAY(restarts_options),
    TN_OPT_END};

/* Cycle i begins after t_0 (1 + t_mult + ... + t_mult^(i - 1)) units. */
static double restarts_begin(const restarts_options *o, double cycle) {
  double length = (double)o->t_0;
  return o->t_mult == 1 ? cycle * length : length * (pow(o->t_mult, cycle) - 1) / (o->t_mult - 1);
}

/* The cycle that holds a moment. The quotient of logarithms may be a rounding away from it. */
static double restarts_cycle(const restarts_options *o, double at) {
  double length = (double)o->t_0;
  if (o->t_mult == 1) return floor(at / length);
  double cycle = floor(log1p(at / length * (o->t_mult - 1)) / log(o->t_mult));
  if (at < restarts_begin(o, cycle)) return cycle - 1;
  return at >= restarts_begin(o, cycle + 1) ? cycle + 1 : cycle;
}

static double restarts_factor(const void *given, const tn_schedule_at *at) {
  const restarts_options *o = given;
  double now = tn_schedule_units_between(at, at->warmup, at->step, o->unit);
  if (now <= 0) return 1.0;
  double cycle = restarts_cycle(o, now), begin = restarts_begin(o, cycle);
  if (o->cycles > 0 && cycle >= (double)o->cycles) return o->floor;
  double done = (now - begin) / ((double)o->t_0 * pow(o->t_mult, cycle));
  return schedule_cosine(pow(o->decay, cycle), o->floor, pow(done, o->k_decay));
}
const tn_schedule cosine_restarts_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "cosine_restarts",
                    "decreases along half a cosine to a floor, and begins again (SGDR)", restarts_options,
                    restarts_rows),
    .example = "t_0 = 10\nt_mult = 2",
    .factor = restarts_factor};
