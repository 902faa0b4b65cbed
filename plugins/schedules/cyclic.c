/* plugins/schedules/cyclic.c: triangles between a floor and lr (Smith, "Cyclical learning rates", WACV 2017),
 * with the values of PyTorch's CyclicLR. */
#include <math.h>

#include "plugins/schedules/schedules.h"

typedef struct cyclic_options {
  double floor, gamma;
  int64_t steps_up, steps_down;
  int32_t mode;
} cyclic_options;
enum { CYCLIC_TRIANGULAR = 0, CYCLIC_TRIANGULAR2 = 1, CYCLIC_EXP_RANGE = 2 };
static const tn_option cyclic_rows[] = {
    TN_OPT(cyclic_options, floor, TN_OPT_FLOAT, "0.1", "[0, 1]",
           "factor at the beginning of a cycle; its peak is lr"),
    TN_OPT(cyclic_options, steps_up, TN_OPT_INT, "2000", ">= 1", "steps in which it rises"),
    TN_OPT(cyclic_options, steps_down, TN_OPT_INT, "0", ">= 0",
           "steps in which it falls; 0: as many as it rises"),
    TN_OPT(cyclic_options, mode, TN_OPT_ENUM, "triangular", "triangular|triangular2|exp_range",
           "height of the peaks: all equal, each half of the one before, or gamma to the power of the step"),
    TN_OPT(cyclic_options, gamma, TN_OPT_FLOAT, "1", "(0, 1]", "base of exp_range"),
    TN_OPT_END};

static double cyclic_height(const cyclic_options *o, double step, double cycle) {
  return o->mode == CYCLIC_TRIANGULAR2 ? pow(0.5, cycle)
         : o->mode == CYCLIC_EXP_RANGE ? pow(o->gamma, step)
                                       : 1.0;
}

static double cyclic_factor(const void *given, const tn_schedule_at *at) {
  const cyclic_options *o = given;
  double up = (double)o->steps_up, down = o->steps_down > 0 ? (double)o->steps_down : up;
  double step = at->step > at->warmup ? (double)(at->step - at->warmup) : 0.0;
  double cycle = floor(step / (up + down)), done = step - cycle * (up + down);
  double rise = done <= up ? done / up : (up + down - done) / down;
  return o->floor + (1.0 - o->floor) * rise * cyclic_height(o, step, cycle);
}
const tn_schedule cyclic_schedule = {.item = TN_ITEM(tn_schedule, TN_SCHEDULE, "cyclic",
                                                     "rises and falls again and again along straight lines",
                                                     cyclic_options, cyclic_rows),
                                     .example = "floor = 0.1\nsteps_up = 2000",
                                     .factor = cyclic_factor};
