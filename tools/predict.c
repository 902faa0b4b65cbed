/* tools/predict.c: `tenon predict FILE.ini --weights W --input x.npy --output y.npy`. */
#include "tools/cli.h"

static int predict_command_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  if (args->input == NULL || args->output == NULL) {
    fprintf(stderr, "tenon predict: expected --input FILE.npy and --output FILE.npy\n");
    return CLI_USAGE;
  }
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_predict(run, args->input, args->output, &json);
  if (json && args->json) printf("%s\n", json);
  code = status == TN_OK ? CLI_OK : cli_fail(args, run, status);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_predict = {.name = "predict",
                                     .words = "FILE.ini",
                                     .doc = "the model's output for a .npy file",
                                     .min_words = 1,
                                     .max_words = 1,
                                     .options = CLI_SET | CLI_JSON | CLI_WEIGHTS | CLI_INPUT | CLI_OUTPUT,
                                     .run = predict_command_run};
