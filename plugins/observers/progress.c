/* plugins/observers/progress.c: progress on stderr, after the facts about the run. On a terminal it is a bar
 * with throughput and remaining time, elsewhere a line per epoch and every 30 s. */
#include <stdio.h>
#include <string.h>

#include "plugins/observers/observers.h"

typedef struct progress_options {
  double every;
} progress_options;
static const tn_option options[] = {TN_OPT(progress_options, every, TN_OPT_DURATION, "0.1", "> 0",
                                           "least time between redraws on a terminal"),
                                    TN_OPT_END};

typedef struct progress {
  tn_run_info run;
  double every, drawn_s, logged_s;
  int drawn; /* the terminal's line shows a bar */
} progress;

static tn_status open_progress(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  progress *p = tn_new(env, sizeof *p);
  if (p == NULL) return TN_ENOMEM;
  *p = (progress){.run = *run, .every = ((const progress_options *)given)->every};
  *self = p;
  return TN_OK;
}

/* "1:02:03" or "2:03" */
static void print_time(char *text, size_t size, double seconds) {
  long s = seconds > 0 ? (long)(seconds + 0.5) : 0;
  if (s >= 3600)
    snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

static void progress_print_metrics(const char *title, const tn_metric *metrics, int32_t n) {
  if (n == 0) return;
  fprintf(stderr, "  %s", title);
  for (int32_t i = 0; i < n; i++) fprintf(stderr, " %s %.4g", metrics[i].name, metrics[i].value);
}

static double time_left(const progress *p, const tn_event *e) {
  if (p->run.steps <= 0 || e->samples_per_s <= 0) return 0;
  return (double)(p->run.steps - e->step) * (double)p->run.batch / e->samples_per_s;
}

static void erase(progress *p) {
  if (p->drawn) fprintf(stderr, "\r\033[K");
  p->drawn = 0;
}

static void draw_bar(progress *p, const tn_event *e) {
  char left[32], bar[64];
  int width = p->run.terminal_columns > 100 ? 30 : 12;
  double share = e->steps_in_epoch > 0 ? (double)e->step_in_epoch / (double)e->steps_in_epoch : 0;
  int full = (int)(share * width + 0.5);
  for (int i = 0; i < width; i++) bar[i] = i < full ? '=' : ' ';
  bar[width] = '\0';
  print_time(left, sizeof left, time_left(p, e));
  fprintf(stderr, "\r\033[Kepoch %lld/%lld [%s] %lld/%lld  %.0f/s  %s left", (long long)e->epoch + 1,
          (long long)p->run.epochs, bar, (long long)e->step_in_epoch, (long long)e->steps_in_epoch,
          e->samples_per_s, left);
  progress_print_metrics("", e->train, e->n_train);
  fflush(stderr);
  p->drawn = 1;
  p->drawn_s = e->seconds;
}

/* Without a terminal: a line every 30 s, so that a log shows progress. */
static void progress_log_step(progress *p, const tn_event *e) {
  char left[32];
  print_time(left, sizeof left, time_left(p, e));
  fprintf(stderr, "epoch %lld step %lld/%lld  %.0f/s  %s left", (long long)e->epoch + 1,
          (long long)e->step_in_epoch, (long long)e->steps_in_epoch, e->samples_per_s, left);
  progress_print_metrics("train", e->train, e->n_train);
  fprintf(stderr, "\n");
  p->logged_s = e->seconds;
}

static void progress_log_epoch(progress *p, const tn_event *e) {
  char took[32];
  erase(p);
  print_time(took, sizeof took, e->seconds);
  fprintf(stderr, "epoch %lld/%lld  %s", (long long)e->epoch + 1, (long long)p->run.epochs, took);
  progress_print_metrics("train", e->train, e->n_train);
  progress_print_metrics("valid", e->valid, e->n_valid);
  if (e->skipped > 0) fprintf(stderr, "  %lld updates skipped", (long long)e->skipped);
  fprintf(stderr, "\n");
}

static tn_status progress_on_event(tn_env *env, void *self, const tn_event *e) {
  progress *p = self;
  (void)env;
  if (e->kind == TN_EVENT_RUN_START && !p->run.quiet) observer_print_banner(stderr, &p->run);
  if (e->kind == TN_EVENT_STEP && p->run.terminal && e->seconds - p->drawn_s >= p->every) draw_bar(p, e);
  if (e->kind == TN_EVENT_STEP && !p->run.terminal && e->seconds - p->logged_s >= 30.0)
    progress_log_step(p, e);
  if (e->kind == TN_EVENT_EPOCH_END) progress_log_epoch(p, e);
  if (e->kind == TN_EVENT_RUN_END) erase(p);
  return TN_OK;
}

static void close_progress(tn_env *env, void *self) { tn_delete(env, self); }

const tn_observer observer_progress = {
    .item = TN_ITEM(tn_observer, TN_OBSERVER, "progress",
                    "progress on stderr: a bar on a terminal, lines elsewhere", progress_options, options),
    .always = 1,
    .prints = 1,
    .open = open_progress,
    .event = progress_on_event,
    .close = close_progress};
