/* tools/train.c: `tenon train FILE.ini`. */
#include <signal.h>
#include <string.h>

#include <jansson.h>

#include "tools/cli.h"

/* The run that the signal handler stops; a handler has no argument. */
static tn_run *running;

static void train_on_signal(int number) {
  tn_run_stop(running);
  signal(number, SIG_DFL); /* a second signal ends the process at once */
}

/* SA_RESTART: calls that a signal interrupts go on, since a checkpoint may be half written. */
static void train_set_handler(void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

static void train_print_metrics(const char *title, const json_t *metrics) {
  const char *name;
  json_t *value;
  if (json_object_size(metrics) == 0) return;
  printf("%-9s", title);
  json_object_foreach((json_t *)metrics, name, value) printf("  %s %.6g", name, json_number_value(value));
  printf("\n");
}

static void train_print(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  if (json == NULL) return;
  printf("status     %s after %lld steps, %.1f s\n", json_string_value(json_object_get(json, "status")),
         json_integer_value(json_object_get(json, "steps")),
         json_number_value(json_object_get(json, "seconds")));
  train_print_metrics("train", json_object_get(json, "train"));
  train_print_metrics("valid", json_object_get(json, "valid"));
  printf("memory     %.1f MiB planned, %.1f MiB measured\n",
         json_number_value(json_object_get(json, "planned_peak_mib")),
         json_number_value(json_object_get(json, "measured_peak_mib")));
  const char *folder = json_string_value(json_object_get(json, "run"));
  if (folder && *folder) printf("run        %s\n", folder);
  json_decref(json);
}

static int train_command_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  running = run;
  train_set_handler(train_on_signal);
  tn_status status = tn_run_train(run, &json);
  train_set_handler(SIG_DFL);
  if (json && args->json)
    printf("%s\n", json);
  else if (json && !args->quiet)
    train_print(json);
  if (status == TN_OK)
    code = CLI_OK;
  else /* a result that was printed has the status */
    code = json ? cli_report(run, status) : cli_fail(args, run, status);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_train = {.name = "train",
                                   .words = "FILE.ini",
                                   .doc = "train the model of a configuration",
                                   .min_words = 1,
                                   .max_words = 1,
                                   .options = CLI_SET | CLI_JSON | CLI_RESUME | CLI_OUTPUT | CLI_WEIGHTS,
                                   .run = train_command_run};
