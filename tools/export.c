/* tools/export.c: `tenon export RUN`: a trained model as a file of another program. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tenon/export.h"
#include "tools/cli/cli.h"

/* "net.onnx" in this folder for "models/net.ini" and for the run folder "runs/net". */
static void export_choose_output(const cli_args *args, char output[PATH_MAX]) {
  const char *path = args->words[0];
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') end--;
  size_t start = end;
  while (start > 0 && path[start - 1] != '/') start--;
  if (end - start > 4 && memcmp(path + end - 4, ".ini", 4) == 0) end -= 4;
  snprintf(output, PATH_MAX, "%.*s.onnx", (int)(end - start), path + start);
  if (args->output != NULL) snprintf(output, PATH_MAX, "%s", args->output);
}

/* A word of an option; false: the list lacks it, which ends with NULL. */
static bool export_read_word(const char *given, const char *const *words, int32_t *index) {
  *index = 0;
  for (int32_t i = 0; given != NULL && words[i] != NULL; i++)
    if (strcmp(given, words[i]) == 0) {
      *index = i;
      return true;
    }
  return given == NULL;
}

static int export_read_options(const cli_args *args, tn_export_options *o) {
  static const char *const no_yes[] = {"no", "yes", NULL}, *const ways[] = {"metadata", "nodes", NULL},
                           *const types[] = {"f32", "f16", "bf16", NULL};
  static const int32_t dtypes[] = {TN_F32, TN_F16, TN_BF16};
  int32_t type;
  *o = (tn_export_options){.struct_size = sizeof *o, .opset = (int32_t)args->opset};
  if (!export_read_word(args->fold, no_yes, &o->fold))
    return cli_refuse(args, CLI_USAGE, "--fold %s, expected yes or no", args->fold);
  if (!export_read_word(args->external, no_yes, &o->external))
    return cli_refuse(args, CLI_USAGE, "--external %s, expected yes or no", args->external);
  if (!export_read_word(args->preprocess, ways, &o->preprocess))
    return cli_refuse(args, CLI_USAGE, "--preprocess %s, expected metadata or nodes", args->preprocess);
  if (!export_read_word(args->precision, types, &type))
    return cli_refuse(args, CLI_USAGE, "--precision %s, expected f32, f16 or bf16", args->precision);
  o->precision = dtypes[type];
  return CLI_OK;
}

static void export_print(const char *text, const cli_args *args) {
  json_t *json = json_loads(text, 0, NULL);
  if (args->json)
    printf("%s\n", text);
  else if (!args->quiet)
    printf("%s%s is written: %lld nodes, %lld weights, %.1f MiB\n", cli_text(json, "file"),
           json_is_true(json_object_get(json, "external")) ? " with its .data" : "",
           cli_integer(json, "nodes"), cli_integer(json, "weights"),
           (double)cli_integer(json, "bytes") / (1024 * 1024));
  json_decref(json);
}

static void export_print_c(const char *text, const cli_args *args) {
  json_t *json = json_loads(text, 0, NULL);
  const char *folder = cli_text(json, "folder"), *name = cli_text(json, "name");
  if (args->json)
    printf("%s\n", text);
  else if (!args->quiet)
    printf("%s/%s.h, .c and .weights are written: %lld steps, %.2f MiB of weights, an arena of %.2f MiB\n",
           folder, name, cli_integer(json, "steps"),
           (double)cli_integer(json, "weight_bytes") / (1024 * 1024),
           (double)cli_integer(json, "arena_bytes") / (1024 * 1024));
  json_decref(json);
}

static tn_status export_onnx(tn_run *run, const cli_args *args, const tn_export_options *options,
                             char **json) {
  char output[PATH_MAX];
  export_choose_output(args, output);
  tn_status status = tn_run_export_onnx(run, output, options, json);
  if (status == TN_OK) export_print(*json, args);
  return status;
}

static tn_status export_c(tn_run *run, const cli_args *args, char **json) {
  const tn_export_c_options options = {.struct_size = sizeof options, .batch = args->batch};
  tn_status status = tn_run_export_c(run, args->output, &options, json);
  if (status == TN_OK) export_print_c(*json, args);
  return status;
}

static int export_command_run(tn_context *context, const cli_args *args) {
  char *json = NULL;
  tn_run *run = NULL;
  tn_export_options options;
  int code = export_read_options(args, &options);
  if (code != CLI_OK) return code;
  if (args->source && args->output == NULL)
    return cli_refuse(args, CLI_USAGE,
                      "--c writes several files, expected a folder for them: --output FOLDER");
  if (!args->source && args->batch > 0)
    return cli_refuse(args, CLI_USAGE, "--batch is for --c; the batch of a file of ONNX has any size");
  cli_args of_run = *args;
  of_run.output = NULL; /* names the file, not the folder of runs */
  code = cli_open_run_or_folder(context, &of_run, &run);
  if (code != CLI_OK) return code;
  tn_status status = args->source ? export_c(run, args, &json) : export_onnx(run, args, &options, &json);
  code = cli_finish(args, run, status, json);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_export = {.name = "export",
                                    .words = "FILE.ini|RUN",
                                    .doc = "a trained model as a file of ONNX, or as a program in C",
                                    .min_words = 1,
                                    .max_words = 1,
                                    .options = CLI_SET | CLI_JSON | CLI_WEIGHTS | CLI_TRUST | CLI_OUTPUT |
                                               CLI_BATCH | CLI_EXPORT,
                                    .run = export_command_run};
