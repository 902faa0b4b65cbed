/* plugins/schedules/ramps.c: constant, linear, wsd, inverse_sqrt and tanh: factors that change along one
 * curve. */
#include <math.h>

#include "plugins/schedules/schedules.h"

typedef struct constant_options {
  double factor;
  int64_t steps;
} constant_options;
static const tn_option constant_rows[] = {
    TN_OPT(constant_options, factor, TN_OPT_FLOAT, "1", "> 0", "factor of lr"),
    TN_OPT(constant_options, steps, TN_OPT_INT, "0", ">= 0",
           "steps until the factor is 1 again; 0: to the end of the run"),
    TN_OPT_END};

static double constant_factor(const void *given, const tn_schedule_at *at) {
  const constant_options *o = given;
  return o->steps == 0 || at->step - at->warmup < o->steps ? o->factor : 1.0;
}
const tn_schedule constant_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "constant",
                                                       "a constant learning rate", constant_options,
                                                       constant_rows),
                                       .factor = constant_factor};

typedef struct linear_options {
  double start_factor, end_factor;
  int64_t steps;
} linear_options;
static const tn_option linear_rows[] = {
    TN_OPT(linear_options, start_factor, TN_OPT_FLOAT, "1", "> 0", "factor at the beginning"),
    TN_OPT(linear_options, end_factor, TN_OPT_FLOAT, "0", ">= 0", "factor at the end, and behind it"),
    TN_OPT(linear_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"), TN_OPT_END};

static double linear_factor(const void *given, const tn_schedule_at *at) {
  const linear_options *o = given;
  return o->start_factor + (o->end_factor - o->start_factor) * schedule_done(at, o->steps);
}
const tn_schedule linear_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "linear",
                                                     "moves along a straight line from one factor to another",
                                                     linear_options, linear_rows),
                                     .example = "end_factor = 0.1",
                                     .factor = linear_factor};

typedef struct wsd_options {
  double decay, floor;
  int32_t shape;
  int64_t steps;
} wsd_options;
enum { WSD_LINEAR = 0, WSD_COSINE = 1, WSD_SQRT = 2 };
static const tn_option wsd_rows[] = {
    TN_OPT(wsd_options, decay, TN_OPT_FLOAT, "0.1", "(0, 1]",
           "part of the run, behind the warm-up, in which it falls"),
    TN_OPT(wsd_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "factor at the end"),
    TN_OPT(wsd_options, shape, TN_OPT_ENUM, "linear", "linear|cosine|sqrt",
           "how it falls; sqrt: by the root of the part that is over"),
    TN_OPT(wsd_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"), TN_OPT_END};

static double wsd_factor(const void *given, const tn_schedule_at *at) {
  const wsd_options *o = given;
  double over = (schedule_done(at, o->steps) - (1.0 - o->decay)) / o->decay;
  if (over <= 0.0) return 1.0;
  if (o->shape == WSD_COSINE) return schedule_cosine(1.0, o->floor, over);
  return 1.0 + (o->floor - 1.0) * (o->shape == WSD_SQRT ? sqrt(over) : over);
}
const tn_schedule wsd_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "wsd",
                    "stays, and decreases in the last part of the run (Hu et al., \"MiniCPM\", 2024)",
                    wsd_options, wsd_rows),
    .example = "warmup = 500\ndecay = 0.2",
    .factor = wsd_factor};

typedef struct root_options {
  int64_t timescale;
} root_options;
static const tn_option root_rows[] = {TN_OPT(root_options, timescale, TN_OPT_INT, "0", ">= 0",
                                             "steps behind the warm-up after which the square of the factor "
                                             "is a half; 0: those of the warm-up, or 10000"),
                                      TN_OPT_END};

static double root_factor(const void *given, const tn_schedule_at *at) {
  const root_options *o = given;
  double scale = o->timescale > 0 ? (double)o->timescale : at->warmup > 0 ? (double)at->warmup : 1e4;
  return at->step <= at->warmup ? 1.0 : 1.0 / sqrt(1.0 + (double)(at->step - at->warmup) / scale);
}
const tn_schedule inverse_sqrt_schedule = {
    .item =
        TN_ITEM(tn_schedule, TN_SCHEDULE, "inverse_sqrt",
                "decreases by the root of the steps (Vaswani et al., NeurIPS 2017)", root_options, root_rows),
    .example = "warmup = 4000",
    .factor = root_factor};

typedef struct tanh_options {
  double lb, ub, floor;
  int64_t steps;
} tanh_options;
static const tn_option tanh_rows[] = {
    TN_OPT(tanh_options, lb, TN_OPT_FLOAT, "-7", NULL, "argument of tanh at the beginning"),
    TN_OPT(tanh_options, ub, TN_OPT_FLOAT, "3", NULL, "argument of tanh at the end"),
    TN_OPT(tanh_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "factor at the end"),
    TN_OPT(tanh_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"), TN_OPT_END};

static double tanh_factor(const void *given, const tn_schedule_at *at) {
  const tanh_options *o = given;
  double done = schedule_done(at, o->steps);
  if (done >= 1.0) return o->floor;
  return o->floor + 0.5 * (1.0 - o->floor) * (1.0 - tanh(o->lb * (1.0 - done) + o->ub * done));
}
const tn_schedule tanh_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "tanh",
                    "decreases along a hyperbolic tangent (Hsueh, Li and Wu, WACV 2019)", tanh_options,
                    tanh_rows),
    .example = "lb = -6\nub = 3",
    .factor = tanh_factor};
