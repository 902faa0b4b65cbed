/* plugins/schedules/plateau.c: drops where a metric has not become better for some epochs, as PyTorch's
 * ReduceLROnPlateau. */
#include <math.h>

#include "plugins/schedules/schedules.h"

typedef struct plateau_options {
  double gamma, threshold, floor;
  int64_t patience, cooldown;
  int32_t threshold_mode;
} plateau_options;
enum { THRESHOLD_REL = 0, THRESHOLD_ABS = 1 };

static const tn_option plateau_rows[] = {
    TN_OPT(plateau_options, gamma, TN_OPT_FLOAT, "0.1", "(0, 1)", "factor of each drop"),
    TN_OPT(plateau_options, patience, TN_OPT_INT, "10", ">= 0",
           "epochs without a better value that are waited for; the next one drops"),
    TN_OPT(plateau_options, threshold, TN_OPT_FLOAT, "1e-4", ">= 0",
           "a value is better if it is so much better"),
    TN_OPT(plateau_options, threshold_mode, TN_OPT_ENUM, "rel", "rel|abs",
           "whether the threshold is a part of the best value or a difference from it"),
    TN_OPT(plateau_options, cooldown, TN_OPT_INT, "0", ">= 0", "epochs after a drop that do not count"),
    TN_OPT(plateau_options, floor, TN_OPT_FLOAT, "0", "[0, 1]", "least factor"),
    TN_OPT_END};

/* The numbers of the state. */
enum { SEEN = 0, BEST = 1, BAD = 2, COOLDOWN = 3, DROPS = 4 };

static double plateau_factor(const void *given, const tn_schedule_at *at) {
  const plateau_options *o = given;
  return fmax(o->floor, pow(o->gamma, at->state[DROPS]));
}

static int plateau_is_better(const plateau_options *o, const tn_schedule_result *r, double best) {
  double sign = r->larger_is_better ? 1 : -1;
  double least =
      o->threshold_mode == THRESHOLD_ABS ? best + sign * o->threshold : best * (1 + sign * o->threshold);
  return r->larger_is_better ? r->value > least : r->value < least;
}

static void plateau_epoch(const void *given, const tn_schedule_result *r, double *state) {
  const plateau_options *o = given;
  int better = state[SEEN] == 0 || plateau_is_better(o, r, state[BEST]);
  state[SEEN] = 1;
  state[BAD] = better ? 0 : state[BAD] + 1;
  if (better) state[BEST] = r->value;
  if (state[COOLDOWN] > 0) {
    state[COOLDOWN]--;
    state[BAD] = 0;
  }
  if (state[BAD] <= (double)o->patience) return;
  state[DROPS]++;
  state[COOLDOWN] = (double)o->cooldown;
  state[BAD] = 0;
}

const tn_schedule plateau_schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "plateau",
                    "drops where the loss, or the metric of [schedule] metric, has stopped to become better",
                    plateau_options, plateau_rows),
    .example = "metric = accuracy\npatience = 5",
    .factor = plateau_factor,
    .epoch = plateau_epoch};
