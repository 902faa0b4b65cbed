/* plugins/schedules/one_cycle.c: one cycle over the run, from lr / div_factor up to lr and down to nearly
 * nothing (Smith and Topin, "Super-convergence", 2018), with the values of PyTorch's OneCycleLR. The momentum
 * has a schedule of its own. */
#include "plugins/schedules/schedules.h"

typedef struct one_cycle_options {
  double pct_start, div_factor, final_div_factor;
  int32_t anneal;
  int64_t steps;
} one_cycle_options;
enum { ONE_CYCLE_COS = 0, ONE_CYCLE_LINEAR = 1 };

static const tn_option one_cycle_rows[] = {
    TN_OPT(one_cycle_options, pct_start, TN_OPT_FLOAT, "0.3", "[0, 1]", "part of the run in which it rises"),
    TN_OPT(one_cycle_options, div_factor, TN_OPT_FLOAT, "25", ">= 0",
           "it begins at lr / div_factor; 0: at 0"),
    TN_OPT(one_cycle_options, final_div_factor, TN_OPT_FLOAT, "1e4", "> 0",
           "it ends at lr / div_factor / final_div_factor"),
    TN_OPT(one_cycle_options, anneal, TN_OPT_ENUM, "cos", "cos|linear", "shape of both parts"),
    TN_OPT(one_cycle_options, steps, TN_OPT_INT, "0", ">= 0", "length in steps; 0: the whole run"),
    TN_OPT_END};

/* From `from` at step `first` to `to` at step `last`. */
static double one_cycle_between(const one_cycle_options *o, double from, double to, double first, double last,
                                double step) {
  double done = last > first ? (step - first) / (last - first) : 1.0;
  done = done < 0.0 ? 0.0 : done > 1.0 ? 1.0 : done;
  return o->anneal == ONE_CYCLE_LINEAR ? from + (to - from) * done : schedule_cosine(from, to, done);
}

/* The peak is at step pct_start * steps - 1, which may lie between two steps, as in PyTorch. */
static double one_cycle_factor(const void *given, const tn_schedule_at *at) {
  const one_cycle_options *o = given;
  int64_t steps = o->steps > 0 ? o->steps : at->steps;
  if (steps <= at->warmup) return 1.0;
  double step = (double)(at->step - at->warmup), last = (double)(steps - at->warmup) - 1.0;
  double peak = o->pct_start * (last + 1.0) - 1.0, start = o->div_factor > 0 ? 1.0 / o->div_factor : 0.0;
  step = step < 0.0 ? 0.0 : step;
  return step <= peak ? one_cycle_between(o, start, 1.0, 0.0, peak, step)
                      : one_cycle_between(o, 1.0, start / o->final_div_factor, peak, last, step);
}
const tn_schedule one_cycle_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "one_cycle",
                    "rises to lr and falls to nearly nothing, once over the run", one_cycle_options,
                    one_cycle_rows),
    .example = "pct_start = 0.3",
    .factor = one_cycle_factor};
