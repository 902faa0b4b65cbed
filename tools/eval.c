/* tools/eval.c: `tenon eval FILE.ini|RUN [--classes]`. */
#include <math.h>

#include <jansson.h>

#include "tools/cli/cli.h"

static void eval_print_metrics(const json_t *json) {
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)json, name, value)
      printf("%-12s %.6g\n", name, json_is_null(value) ? NAN : json_number_value(value));
}

/* ---- --classes ---- */

static void eval_print_class(const char *name, const json_t *class) {
  static const char *const numbers[] = {"precision", "recall", "f1", "auc"};
  printf("%-20s", name);
  if (json_object_get(class, "samples"))
    printf(" %8lld", (long long)json_integer_value(json_object_get(class, "samples")));
  else
    printf(" %8s", "");
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const json_t *value = json_object_get(class, numbers[i]);
    if (json_is_number(value))
      printf(" %10.4f", json_number_value(value));
    else
      printf(" %10s", "-");
  }
  printf("\n");
}

static void eval_print_confusion(const json_t *names, const json_t *confusion) {
  size_t i, k;
  const json_t *row, *n;
  printf("\n%-20s", "true, predicted as:");
  json_array_foreach(names, i, n) printf(" %8.8s", json_string_value(n));
  printf("\n");
  json_array_foreach(confusion, i, row) {
    printf("%-20.20s", json_string_value(json_array_get(names, i)));
    json_array_foreach(row, k, n) printf(" %8lld", (long long)json_integer_value(n));
    printf("\n");
  }
}

static void eval_print_classes(const json_t *json) {
  enum { COLUMNS = 20 }; /* the widest matrix that is printed */
  size_t i;
  const json_t *class, *names = json_object_get(json, "classes");
  printf("%-20s %8s %10s %10s %10s %10s\n", "class", "samples", "precision", "recall", "F1", "AUC");
  json_array_foreach(json_object_get(json, "by_class"), i, class)
      eval_print_class(json_string_value(json_object_get(class, "name")), class);
  eval_print_class("mean", json_object_get(json, "means"));
  if (json_array_size(names) <= COLUMNS) eval_print_confusion(names, json_object_get(json, "confusion"));
}

static void eval_print(const cli_args *args, const char *text) {
  json_t *json = cli_load_plain(text);
  if (args->classes)
    eval_print_classes(json);
  else
    eval_print_metrics(json);
  json_decref(json);
}

static int eval_command_run(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  int code = cli_open_run_or_folder(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = args->classes ? tn_run_examine(run, &json) : tn_run_eval(run, &json);
  if (json && args->json)
    printf("%s\n", json);
  else if (json)
    eval_print(args, json);
  code = cli_finish(args, run, status, json);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_eval = {.name = "eval",
                                  .words = "FILE.ini|RUN",
                                  .doc = "losses and metrics over the validation data",
                                  .min_words = 1,
                                  .max_words = 1,
                                  .options = CLI_SET | CLI_JSON | CLI_WEIGHTS | CLI_TRUST | CLI_CLASSES,
                                  .run = eval_command_run};
