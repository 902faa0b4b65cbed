/* The schedule cosine, except that it never returns, as a thread in a dead lock: at a step, on the one rank
 * that makes the file `stuck` first; or in the process for whose id a file `stuck.ID` appears. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <tenon/plugin/schedule.h>
#include <unistd.h>

typedef struct stuck_options {
  int64_t at;
} stuck_options;

static int stuck_begins(const stuck_options *o, int64_t step) {
  char path[32];
  if (o->at >= 0) return step >= o->at && open("stuck", O_CREAT | O_EXCL | O_CLOEXEC, 0666) >= 0;
  snprintf(path, sizeof path, "stuck.%lld", (long long)getpid());
  return access(path, F_OK) == 0;
}

static double stuck_factor(const void *options, const tn_schedule_at *at) {
  if (stuck_begins(options, at->step))
    for (;;) pause();
  return at->steps > 0 ? 0.5 + 0.5 * cos(3.14159265358979 * (double)at->step / (double)at->steps) : 1;
}

static const tn_option options[] = {
    TN_OPT(stuck_options, at, TN_OPT_INT, "-1", NULL, "step at which one rank hangs"), TN_OPT_END};

static const tn_schedule schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "stuck", "hangs", stuck_options, options),
    .factor = stuck_factor};

TN_PLUGIN(stuck, "1", "MIT", &schedule.item)
