/* tools/report.c: `tenon report RUN... [--output FILE.html]`. */
#include <jansson.h>
#include <stdlib.h>

#include "tools/cli/cli.h"
#include "tenon/folders.h"

static int report_command_run(tn_context *context, const cli_args *args) {
  char path[4096];
  const char *first = args->words[0];
  if (args->output != NULL)
    snprintf(path, sizeof path, "%s", args->output);
  else
    snprintf(path, sizeof path, "%s/report.html", first);
  tn_status status = tn_write_report(context, args->words, args->n_words, path);
  if (status != TN_OK) return cli_fail(args, context, status);
  if (args->json) {
    json_t *result = json_pack("{s:o, s:i}", "report", cli_json_text(path), "runs", args->n_words);
    char *text = result ? json_dumps(result, 0) : NULL;
    if (text) printf("%s\n", text);
    free(text);
    json_decref(result);
  } else {
    printf("%s\n", path);
  }
  return CLI_OK;
}

const cli_command command_report = {
    .name = "report",
    .words = "RUN...",
    .doc = "a page about runs: curves, configurations, errors; RUN/report.html, or --output FILE",
    .min_words = 1,
    .max_words = CLI_MAX_WORDS,
    .options = CLI_JSON | CLI_OUTPUT,
    .run = report_command_run};
