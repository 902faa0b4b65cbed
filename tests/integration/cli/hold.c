/* The schedule `constant`, or `cosine`, that holds a training in front of a step until a test lets it go:
 * the test may look, send signals and kill meanwhile, however long that takes. The file `held.N` says that
 * process N is held (0: there is one process alone). A process goes on when the file `go` is there. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tenon/plugin/schedule.h>

typedef struct hold_options {
  int64_t at;
  int32_t cosine;
} hold_options;

static void hold(void) {
  const char *process = getenv("TENON_PROCESS");
  char path[64];
  snprintf(path, sizeof path, "held.%s", process != NULL ? process : "0");
  int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file >= 0) close(file);
  while (access("go", F_OK) != 0) nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static double hold_factor(const void *options, const tn_schedule_at *at) {
  const hold_options *o = options;
  if (at->step == o->at) hold();
  return o->cosine ? 0.5 + 0.5 * cos(3.14159265358979 * (double)at->step / (double)at->steps) : 1;
}

static const tn_option options[] = {
    TN_OPT(hold_options, at, TN_OPT_INT, "-1", ">= -1", "the step, counted from 0; -1: none"),
    TN_OPT(hold_options, cosine, TN_OPT_FLAG, "no", NULL, "a cosine, else constant"), TN_OPT_END};

static const tn_schedule schedule = {
    .item = TN_ITEM(tn_schedule, TN_SCHEDULE, "hold", "1, and waits", hold_options, options),
    .factor = hold_factor};

TN_PLUGIN(hold, "1", "MIT", &schedule.item)
