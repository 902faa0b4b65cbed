/* tools/data.c: `tenon data FILE.ini [--picture FILE.png]`: the batches that training and validation get. */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"

enum { DATA_MOST_CLASSES = 12 };

static void data_print_field(const json_t *f) {
  double missing = cli_number(f, "missing"), of = cli_number(f, "number");
  printf("  %-7s %-14s %-20s %10.4g %10.4g %10.4g %10.4g", cli_text(f, "role"), cli_text(f, "name"),
         cli_text(f, "type"), cli_number(f, "min"), cli_number(f, "max"), cli_number(f, "mean"),
         cli_number(f, "deviation"));
  if (missing > 0) printf("  %.3g %% NaN", 100 * missing / of);
  printf("\n");
}

/* The first classes, each with its samples; then how many there are. */
static void data_print_classes(const json_t *part) {
  size_t i, n = json_array_size(json_object_get(part, "classes"));
  const json_t *class;
  if (n == 0) return;
  printf("  classes");
  json_array_foreach(json_object_get(part, "classes"), i, class) if (i < DATA_MOST_CLASSES)
      printf("%s %s %lld", i > 0 ? "," : "", cli_text(class, "name"), cli_integer(class, "samples"));
  if (n > DATA_MOST_CLASSES) printf(", and %zu more", n - DATA_MOST_CLASSES);
  if (strcmp(cli_text(part, "counted"), "seen") == 0)
    printf(" (of %lld samples)", cli_integer(part, "looked_at"));
  printf("\n");
}

static void data_print_part(const char *name, const json_t *part) {
  size_t i;
  const json_t *field;
  double per_s = cli_number(part, "per_s");
  if (!json_is_object(part)) {
    printf("%s  no samples\n", name);
    return;
  }
  printf("%s  %s: %lld samples in an epoch", name, cli_text(part, "source"), cli_integer(part, "samples"));
  if (isfinite(per_s)) printf(", %.4g a second with %lld workers", per_s, cli_integer(part, "workers"));
  printf("\n  %-7s %-14s %-20s %10s %10s %10s %10s\n", "", "field", "type", "min", "max", "mean",
         "deviation");
  json_array_foreach(json_object_get(part, "fields"), i, field) data_print_field(field);
  data_print_classes(part);
}

static int data_command(tn_context *context, const cli_args *args) {
  tn_run *run = NULL;
  char *json = NULL;
  const tn_data_options options = {.struct_size = sizeof options, .picture = args->picture};
  int code = cli_open_run(context, args, &run);
  if (code != CLI_OK) return code;
  tn_status status = tn_run_data(run, &options, &json);
  if (status == TN_OK && args->json) {
    printf("%s\n", json);
  } else if (status == TN_OK) {
    json_t *result = cli_load_plain(json);
    data_print_part("training  ", json_object_get(result, "train"));
    data_print_part("validation", json_object_get(result, "valid"));
    if (args->picture != NULL) printf("%s is written: the first batch of training\n", args->picture);
    json_decref(result);
  }
  code = status == TN_OK ? CLI_OK : cli_fail(args, run, status);
  tn_string_free(run, json);
  tn_run_close(run);
  return code;
}

const cli_command command_data = {.name = "data",
                                  .words = "FILE.ini",
                                  .doc = "look at the batches: fields, ranges, classes, a picture, speed",
                                  .min_words = 1,
                                  .max_words = 1,
                                  .options = CLI_SET | CLI_JSON | CLI_DATA_COMMAND,
                                  .run = data_command};
