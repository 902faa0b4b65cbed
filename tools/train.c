/* tools/train.c: `tenon train FILE.ini`. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <jansson.h>

#include "tools/cli/cli.h"

/* The run that the signal handler stops; a handler has no argument. */
static tn_run *running;

static void train_on_signal(int number) {
  tn_run_stop(running);
  signal(number, SIG_DFL); /* a second signal ends the process at once */
}

static const int train_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
enum { TRAIN_SIGNALS = sizeof train_signals / sizeof *train_signals };

/* Replaces the handler `from` of a signal. A signal that the parent ignores, as under nohup, stays ignored.
 * SA_RESTART: calls that a signal interrupts go on, since a checkpoint may be half written. */
static void train_set_handler(int number, void (*from)(int), void (*to)(int)) {
  struct sigaction action, now;
  memset(&action, 0, sizeof action);
  action.sa_handler = to;
  action.sa_flags = SA_RESTART;
  if (sigaction(number, NULL, &now) == 0 && now.sa_handler == from) sigaction(number, &action, NULL);
}

/* A pipe on stderr or stdout whose reader has gone must not end a training: it goes on without output. */
static void train_catch_signals(tn_run *run) {
  running = run;
  for (int i = 0; i < TRAIN_SIGNALS; i++) train_set_handler(train_signals[i], SIG_DFL, train_on_signal);
  train_set_handler(SIGPIPE, SIG_DFL, SIG_IGN);
}

static void train_leave_signals(void) {
  for (int i = 0; i < TRAIN_SIGNALS; i++) train_set_handler(train_signals[i], train_on_signal, SIG_DFL);
}

/* A value that is not finite is null: JSON has no NaN. */
static double train_number(const json_t *value) {
  return json_is_null(value) ? NAN : json_number_value(value);
}

/* Columns of the terminal on stdout; the lines of a file have no end. */
static int train_columns(void) {
  struct winsize size;
  bool known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : INT_MAX;
}

static void train_print_metrics(const char *title, const json_t *metrics) {
  const char *name;
  json_t *value;
  char text[128];
  int columns = train_columns();
  if (json_object_size(metrics) == 0) return;
  int at = printf("%-9s", title), indent = at;
  json_object_foreach((json_t *)metrics, name, value) {
    int n = snprintf(text, sizeof text, "  %s %.6g", name, train_number(value));
    if (at > indent && at + n > columns) at = printf("\n%*s", indent, "") - 1;
    at += printf("%s", text);
  }
  printf("\n");
}

static void train_print(const char *text) {
  json_t *json = cli_load_plain(text);
  if (json == NULL) return;
  const char *reason = cli_text(json, "reason");
  printf("status     %s after %lld steps, %.1f s%s%s%s\n", cli_text(json, "status"),
         cli_integer(json, "steps"), cli_number(json, "seconds"), reason && *reason ? " (" : "",
         reason ? reason : "", reason && *reason ? ")" : "");
  train_print_metrics("train", json_object_get(json, "train"));
  train_print_metrics("valid", json_object_get(json, "valid"));
  printf("memory     %.1f MiB planned, %.1f MiB measured\n",
         json_number_value(json_object_get(json, "planned_peak_mib")),
         json_number_value(json_object_get(json, "measured_peak_mib")));
  cli_print_memory(json);
  const char *folder = json_string_value(json_object_get(json, "run"));
  if (folder && *folder) printf("run        %s\n", folder);
  json_decref(json);
}

static int train_command_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  train_catch_signals(run);
  tn_status status = tn_run_train(run, &json);
  train_leave_signals();
  if (json && args->json)
    printf("%s\n", json);
  else if (json && !args->quiet)
    train_print(json);
  code = cli_finish(args, run, status, json);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_train = {.name = "train",
                                   .words = "FILE.ini",
                                   .doc = "train the model of a configuration",
                                   .min_words = 1,
                                   .max_words = 1,
                                   .options =
                                       CLI_SET | CLI_JSON | CLI_RESUME | CLI_OUTPUT | CLI_WEIGHTS | CLI_TRACE,
                                   .run = train_command_run};
