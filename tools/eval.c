/* tools/eval.c: `tenon eval FILE.ini --weights W.safetensors`. */
#include <math.h>

#include <jansson.h>

#include "tools/cli.h"

static void eval_print(const char *text) {
  json_t *json = json_loads(text, 0, NULL), *value;
  const char *name;
  json_object_foreach(json, name, value)
      printf("%-12s %.6g\n", name, json_is_null(value) ? NAN : json_number_value(value));
  json_decref(json);
}

static int eval_command_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_eval(run, &json);
  if (json && args->json)
    printf("%s\n", json);
  else if (json)
    eval_print(json);
  code = status == TN_OK ? CLI_OK : cli_fail(args, run, status);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_eval = {.name = "eval",
                                  .words = "FILE.ini",
                                  .doc = "losses and metrics over the validation data",
                                  .min_words = 1,
                                  .max_words = 1,
                                  .options = CLI_SET | CLI_JSON | CLI_WEIGHTS,
                                  .run = eval_command_run};
