/* tools/import.c: `tenon import FILE.onnx|FILE.gguf`: a model of another program as a configuration. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"
#include "tenon/import.h"

/* "net.ini" in this folder for "models/net.onnx". */
static void import_choose_output(const cli_args *args, char output[PATH_MAX]) {
  const char *path = args->words[0], *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  int n = dot != NULL && dot != name ? (int)(dot - name) : (int)strlen(name);
  snprintf(output, PATH_MAX, "%.*s.ini", n, name);
  if (args->output != NULL) snprintf(output, PATH_MAX, "%s", args->output);
}

static bool import_is_gguf(const char *path) {
  size_t n = strlen(path);
  return n >= 5 && strcmp(path + n - 5, ".gguf") == 0;
}

static void import_print_gguf(const json_t *json) {
  const char *tokenizer = cli_text(json, "tokenizer");
  printf("%s is written: %lld parameters in %s%s%s; let it write:\n  tenon generate %s --prompt \"Once upon "
         "a time\"\n",
         cli_text(json, "configuration"), cli_integer(json, "parameters"), cli_text(json, "weights"),
         tokenizer != NULL ? ", tokenizer in " : "", tokenizer != NULL ? tokenizer : "",
         cli_text(json, "configuration"));
}

static void import_print(const char *text, const cli_args *args) {
  json_t *json = json_loads(text, 0, NULL);
  if (args->json)
    printf("%s\n", text);
  else if (!args->quiet && import_is_gguf(args->words[0]))
    import_print_gguf(json);
  else if (!args->quiet)
    printf("%s is written: %lld nodes as %lld lines, %lld parameters%s%s; look at it:\n  tenon plan %s\n",
           cli_text(json, "configuration"), cli_integer(json, "nodes"), cli_integer(json, "lines"),
           cli_integer(json, "parameters"), cli_text(json, "weights") != NULL ? " in " : "",
           cli_text(json, "weights") != NULL ? cli_text(json, "weights") : "",
           cli_text(json, "configuration"));
  json_decref(json);
}

static int import_command_run(tn_context *context, const cli_args *args) {
  char output[PATH_MAX], *json = NULL;
  import_choose_output(args, output);
  const tn_import_options options = {.struct_size = sizeof options,
                                     .n_constants = args->n_inputs,
                                     .constants = args->inputs,
                                     .flat = args->flat};
  const char *path = args->words[0];
  tn_status status = import_is_gguf(path) ? tn_import_gguf(context, path, output, &json)
                                          : tn_import_onnx(context, path, output, &options, &json);
  if (status != TN_OK) return cli_report(context, status);
  import_print(json, args);
  tn_string_free(context, json);
  return CLI_OK;
}

const cli_command command_import = {
    .name = "import",
    .words = "FILE.onnx|FILE.gguf",
    .doc = "a model of ONNX, or a decoder of GGUF, as a configuration and its weights",
    .min_words = 1,
    .max_words = 1,
    .options = CLI_JSON | CLI_OUTPUT | CLI_IMPORT,
    .run = import_command_run};
