/* tools/find_lr.c: `tenon find-lr FILE.ini`: losses over a rising learning rate, as a plot and a suggestion.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "tools/cli/cli.h"

enum { COLUMNS = 60, ROWS = 12 };

/* The smoothed losses by column; NaN: no point. */
typedef struct lr_plot {
  double loss[COLUMNS], from, to; /* from, to: learning rates of the first and the last column */
  double low, high;               /* losses of the last and the first row */
} lr_plot;

static double find_lr_of_point(const json_t *points, size_t i, const char *key) {
  return cli_number(json_array_get(points, i), key);
}

static int find_lr_column(const lr_plot *p, double lr) {
  if (!(p->to > p->from)) return 0;
  int column = (int)lround(log(lr / p->from) / log(p->to / p->from) * (COLUMNS - 1));
  return column < 0 ? 0 : column >= COLUMNS ? COLUMNS - 1 : column;
}

/* The rise at the end is cut off above the losses before the least one, or nothing else could be seen. */
static void find_lr_choose_rows(lr_plot *p, const json_t *points) {
  size_t n = json_array_size(points), least = 0;
  for (size_t i = 0; i < n; i++)
    if (find_lr_of_point(points, i, "smoothed") < find_lr_of_point(points, least, "smoothed")) least = i;
  p->low = p->high = find_lr_of_point(points, least, "smoothed");
  for (size_t i = 0; i < least || (least < n / 4 && i < n); i++)
    p->high = fmax(p->high, find_lr_of_point(points, i, "smoothed"));
  if (!(p->high > p->low)) p->high = p->low + 1;
}

static void find_lr_fill(lr_plot *p, const json_t *points) {
  size_t n = json_array_size(points);
  for (int c = 0; c < COLUMNS; c++) p->loss[c] = NAN;
  p->from = find_lr_of_point(points, 0, "lr");
  p->to = find_lr_of_point(points, n - 1, "lr");
  find_lr_choose_rows(p, points);
  for (size_t i = 0; i < n; i++) {
    double *loss = &p->loss[find_lr_column(p, find_lr_of_point(points, i, "lr"))];
    *loss = fmin(*loss, find_lr_of_point(points, i, "smoothed")); /* of two points the lower one; NaN: none */
  }
}

static void find_lr_print_row(const lr_plot *p, int row) {
  double step = (p->high - p->low) / (ROWS - 1), value = p->high - row * step;
  char line[COLUMNS + 1];
  for (int c = 0; c < COLUMNS; c++) {
    double at = fmin(p->loss[c], p->high);
    line[c] = !isnan(p->loss[c]) && lround((p->high - at) / step) == row ? '*' : ' ';
  }
  int width = COLUMNS;
  while (width > 0 && line[width - 1] == ' ') width--;
  printf("%9.4g |%.*s\n", value, width, line);
}

static void find_lr_print_plot(const json_t *points, double steepest, double least) {
  lr_plot p;
  char axis[COLUMNS + 1];
  find_lr_fill(&p, points);
  printf("loss, smoothed\n");
  for (int row = 0; row < ROWS; row++) find_lr_print_row(&p, row);
  memset(axis, '-', COLUMNS);
  axis[COLUMNS] = '\0';
  if (isfinite(least)) axis[find_lr_column(&p, least)] = 'L';
  if (isfinite(steepest)) axis[find_lr_column(&p, steepest)] = 'S';
  printf("%9s +%s\n%11.1e%*.1e\n", "lr", axis, p.from, COLUMNS - 1, p.to);
}

static void find_lr_print_end(const json_t *json) {
  double not_finite = cli_number(json, "not_finite");
  printf("\n%lld steps", cli_integer(json, "steps"));
  if (isfinite(not_finite))
    printf(", until the loss was not finite with lr = %.2g", not_finite);
  else if (json_is_true(json_object_get(json, "diverged")))
    printf(", until the loss rose far");
  printf("\n");
}

static void find_lr_print_no_advice(const json_t *json) {
  double not_finite = cli_number(json, "not_finite");
  size_t points = json_array_size(json_object_get(json, "points"));
  if (isfinite(not_finite))
    printf("the loss is a number in %zu steps only, and does not fall: `--to %.1g` looks closer below the "
           "learning "
           "rate with which it is not finite\n",
           points, not_finite / 2);
  else
    printf("the loss does not fall at any of them by more than its noise: `--steps %lld` looks longer, "
           "`--set run.overfit=1` shows whether the model can learn at all\n",
           3 * cli_integer(json, "steps"));
}

static void find_lr_print(const char *text) {
  json_t *json = cli_load_plain(text), *points = json_object_get(json, "points");
  double steepest = cli_number(json, "steepest"), least = cli_number(json, "least");
  if (json_array_size(points) > 1) find_lr_print_plot(points, steepest, least);
  find_lr_print_end(json);
  if (isfinite(steepest)) {
    printf("S  lr = %-8.2g the loss falls fastest\n", steepest);
    printf("L  lr = %-8.2g the loss is least; a tenth of it, %.2g, is the usual choice\n", least, least / 10);
    printf("\nwrite `lr = %.2g` into [optimizer], or try it: --set optimizer.lr=%.2g\n", least / 10,
           least / 10);
  } else {
    find_lr_print_no_advice(json);
  }
  json_decref(json);
}

/* A line that is overwritten, on a terminal. */
static void find_lr_show_step(void *user, int32_t step, double lr, double loss) {
  (void)user;
  fprintf(stderr, "\rstep %d  lr %.2e  loss %-10.4g", (int)step, lr, loss);
}

static int find_lr_command(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  bool shows = isatty(STDERR_FILENO) && !args->quiet;
  const tn_find_lr_options options = {.struct_size = sizeof options,
                                      .steps = (int32_t)args->steps,
                                      .from = args->from,
                                      .to = args->to,
                                      .progress = shows ? find_lr_show_step : NULL};
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_find_lr(run, &options, &json);
  if (shows) fprintf(stderr, "\r%50s\r", "");
  if (status == TN_OK && args->json)
    printf("%s\n", json);
  else if (status == TN_OK)
    find_lr_print(json);
  code = status == TN_OK ? CLI_OK : cli_fail(args, run, status);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_find_lr = {.name = "find-lr",
                                     .words = "FILE.ini",
                                     .doc = "look for a learning rate by steps in which it rises",
                                     .min_words = 1,
                                     .max_words = 1,
                                     .options = CLI_SET | CLI_JSON | CLI_WEIGHTS | CLI_FIND_LR,
                                     .run = find_lr_command};
