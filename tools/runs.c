/* tools/runs.c: `tenon runs [FOLDER]`: a table of run folders. */
#include <jansson.h>

#include "tools/cli/cli.h"
#include "tenon/folders.h"
#include "tools/sweep/sweep.h"

static void runs_print_one(const json_t *run) {
  char started[CLI_DATE], epochs[32], best[64] = "-", loss[32] = "-";
  const char *file = cli_text(run, "file");
  cli_format_date(cli_integer(run, "started"), started);
  snprintf(epochs, sizeof epochs, "%lld/%lld", cli_integer(run, "epochs"),
           cli_integer(run, "planned_epochs"));
  if (json_is_number(json_object_get(run, "best")))
    snprintf(best, sizeof best, "%s %.5g", cli_text(run, "best_metric"), cli_number(run, "best"));
  if (json_is_number(json_object_get(run, "loss")))
    snprintf(loss, sizeof loss, "%.5g", cli_number(run, "loss"));
  printf("%-20s %-16s %-11s %9s %9lld %-20s %10s  %-8s %-6s %10lld  %s\n", cli_text(run, "name"), started,
         cli_text(run, "status"), epochs, cli_integer(run, "steps"), best, loss, cli_text(run, "backend"),
         cli_text(run, "precision"), cli_integer(run, "parameters"), file != NULL ? file : "");
}

static void runs_print_sweeps(const json_t *sweeps) {
  for (size_t i = 0; i < json_array_size(sweeps); i++)
    printf("%s is a sweep: `tenon runs %s`\n", json_string_value(json_array_get(sweeps, i)),
           json_string_value(json_array_get(sweeps, i)));
}

static void runs_print(const json_t *json) {
  const json_t *runs = json_object_get(json, "runs"), *sweeps = json_object_get(json, "sweeps");
  if (json_array_size(runs) == 0 && json_array_size(sweeps) > 0) return runs_print_sweeps(sweeps);
  if (json_array_size(runs) == 0) {
    printf("no runs in %s\n", cli_text(json, "folder"));
    return;
  }
  printf("%-20s %-16s %-11s %9s %9s %-20s %10s  %-8s %-6s %10s  %s\n", "run", "started", "status", "epochs",
         "steps", "best", "last loss", "backend", "dtypes", "parameters", "file");
  for (size_t i = 0; i < json_array_size(runs); i++) {
    const json_t *run = json_array_get(runs, i);
    const char *reason = cli_text(run, "reason");
    if (reason != NULL)
      printf("%-20s cannot be read: %s\n", cli_text(run, "name"), reason);
    else
      runs_print_one(run);
  }
  runs_print_sweeps(sweeps);
}

static int runs_command_run(tn_context *context, const cli_args *args) {
  char *text = NULL;
  tn_status status = tn_list_runs(context, args->n_words > 0 ? args->words[0] : "runs", &text);
  if (status != TN_OK) return cli_fail(args, context, status);
  json_t *json = cli_load_plain(text);
  const json_t *swept = json_object_get(json, "sweep");
  if (args->json)
    printf("%s\n", text);
  else if (swept != NULL)
    sweep_print(swept);
  else
    runs_print(json);
  json_decref(json);
  tn_string_free(context, text);
  return CLI_OK;
}

const cli_command command_runs = {
    .name = "runs",
    .words = "[FOLDER]",
    .doc = "a table of the run folders in FOLDER (default: runs), the newest first",
    .min_words = 0,
    .max_words = 1,
    .options = CLI_JSON,
    .run = runs_command_run};
