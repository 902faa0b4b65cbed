/* plugins/observers/progress.c: progress on stderr, after the facts about the run. On a terminal it is a bar
 * with throughput and remaining time, elsewhere a line per epoch and every 30 s. */
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "plugins/observers/bar.h"
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
  size_t drawn;                 /* columns of the bar on the terminal; 0: none */
  tn_metric valid[BAR_METRICS]; /* of the last validation */
  char names[BAR_METRICS][64];
  int32_t n_valid;
} progress;

static tn_status open_progress(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  progress *p = tn_new(env, sizeof *p);
  if (p == NULL) return TN_ENOMEM;
  *p = (progress){.run = *run, .every = ((const progress_options *)given)->every};
  *self = p;
  return TN_OK;
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

/* ---- a terminal ---- */

/* Asked at each redraw, so that a window of another size gets a bar of its size. */
static int progress_columns(const progress *p) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return p->run.terminal_columns;
}

/* Moves to the first row of the bar. A window that has become narrower shows the bar in several rows. */
static int progress_go_back(const progress *p, char *text, size_t size, int columns) {
  size_t rows = p->drawn > 0 && columns > 0 ? (p->drawn - 1) / (size_t)columns : 0;
  return rows > 0 ? snprintf(text, size, "\r\033[%zuA\033[J", rows) : snprintf(text, size, "\r");
}

static void erase(progress *p) {
  char back[32];
  if (p->drawn == 0) return;
  progress_go_back(p, back, sizeof back, progress_columns(p));
  fprintf(stderr, "%s\033[K", back);
  p->drawn = 0;
}

/* One write for each redraw, so that the terminal never shows half of it. */
static void draw_bar(progress *p, const tn_event *e) {
  char text[BAR_TEXT], line[BAR_TEXT + 64];
  int columns = progress_columns(p), validating = e->kind == TN_EVENT_VALID_STEP;
  const bar_facts facts = {.epoch = e->epoch + 1,
                           .epochs = p->run.epochs,
                           .step = e->step_in_epoch,
                           .steps = e->steps_in_epoch,
                           .validating = validating,
                           .rate = e->samples_per_s,
                           .seconds_left = time_left(p, e),
                           .train = e->train,
                           .n_train = e->n_train,
                           .valid = validating ? e->valid : p->valid,
                           .n_valid = validating ? e->n_valid : p->n_valid};
  size_t drawn = observer_bar_text(text, &facts, columns);
  int n = progress_go_back(p, line, sizeof line, columns);
  n += snprintf(line + n, sizeof line - (size_t)n, "%s\033[K", text);
  fwrite(line, 1, (size_t)n, stderr);
  fflush(stderr);
  p->drawn = drawn;
  p->drawn_s = e->seconds;
}

/* ---- lines ---- */

/* Without a terminal: a line every 30 s, so that a log shows progress. */
static void progress_log_step(progress *p, const tn_event *e) {
  char left[32];
  observer_bar_time(left, sizeof left, time_left(p, e));
  fprintf(stderr, "epoch %lld step %lld/%lld  %.0f/s  %s left", (long long)e->epoch + 1,
          (long long)e->step_in_epoch, (long long)e->steps_in_epoch, e->samples_per_s, left);
  progress_print_metrics("train", e->train, e->n_train);
  fprintf(stderr, "\n");
  p->logged_s = e->seconds;
}

/* Begins a new row of a terminal before a text that does not fit into this one. */
static int progress_print_part(int columns, int used, const char *text, int n) {
  bool fits = columns == 0 || used + n < columns;
  fprintf(stderr, "%s%s", fits ? "" : "\n", text);
  return fits ? used + n : n;
}

/* A terminal gets full names if they fit into its row, or names of 4 or 3 letters a word. */
static void progress_log_metrics(const progress *p, const tn_event *e, int used) {
  static const int letters[] = {64, 4, 3};
  char train[BAR_TEXT], valid[BAR_TEXT];
  int columns = p->run.terminal ? progress_columns(p) : 0, n = 0, m = 0;
  for (int i = 0; i == 0 || (i < 3 && columns > 0 && used + n + m >= columns); i++) {
    n = observer_bar_metrics(train, sizeof train, "train", e->train, e->n_train, letters[i], BAR_METRICS);
    m = observer_bar_metrics(valid, sizeof valid, "valid", e->valid, e->n_valid, letters[i], BAR_METRICS);
  }
  used = progress_print_part(columns, used, train, n);
  progress_print_part(columns, used, valid, m);
}

static void progress_log_epoch(progress *p, const tn_event *e) {
  char took[32];
  erase(p);
  observer_bar_time(took, sizeof took, e->seconds);
  int used = fprintf(stderr, "epoch %lld/%lld  %s", (long long)e->epoch + 1, (long long)p->run.epochs, took);
  progress_log_metrics(p, e, used);
  if (e->skipped > 0) fprintf(stderr, "  %lld updates skipped", (long long)e->skipped);
  fprintf(stderr, "\n");
}

/* Keeps the metrics of the validation for the bars of the next epoch. */
static void progress_keep_valid(progress *p, const tn_event *e) {
  p->n_valid = e->n_valid < BAR_METRICS ? e->n_valid : BAR_METRICS;
  for (int32_t i = 0; i < p->n_valid; i++) {
    snprintf(p->names[i], sizeof p->names[i], "%s", e->valid[i].name);
    p->valid[i] = (tn_metric){p->names[i], e->valid[i].value};
  }
}

static void progress_print_profile(progress *p, const tn_event *e) {
  erase(p);
  fprintf(stderr, "\n%s\n", e->table);
}

static tn_status progress_on_event(tn_env *env, void *self, const tn_event *e) {
  progress *p = self;
  (void)env;
  if (p->run.quiet) return TN_OK;
  if (e->kind == TN_EVENT_RUN_START)
    observer_print_banner(stderr, &p->run, p->run.terminal ? progress_columns(p) : 0);
  int step = e->kind == TN_EVENT_STEP || e->kind == TN_EVENT_VALID_STEP;
  if (step && p->run.terminal && e->seconds - p->drawn_s >= p->every) draw_bar(p, e);
  if (e->kind == TN_EVENT_STEP && !p->run.terminal && e->seconds - p->logged_s >= 30.0)
    progress_log_step(p, e);
  if (e->kind == TN_EVENT_EPOCH_END) progress_log_epoch(p, e);
  if (e->kind == TN_EVENT_EPOCH_END) progress_keep_valid(p, e);
  if (e->kind == TN_EVENT_PROFILE) progress_print_profile(p, e);
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
