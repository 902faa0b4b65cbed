/* tools/compare.c: `tenon compare FILE.ini --backends A,B`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"

/* The two names of --backends. */
typedef struct compare_names {
  char text[256];
  const char *name[2]; /* of text: the reference, and the backend that is tested */
} compare_names;

static int compare_usage(const cli_args *args, const char *text, const char *what) {
  return cli_refuse(args, CLI_USAGE, "%s '%s'; see `tenon compare --help`", text, what);
}

static int compare_read_names(const cli_args *args, compare_names *names) {
  const char *given = args->backends;
  if (given == NULL)
    return compare_usage(args, "which backends? Expected --backends A,B for", args->words[0]);
  const char *comma = strchr(given, ',');
  if (comma == NULL || comma == given || comma[1] == '\0' || strchr(comma + 1, ',') != NULL ||
      strlen(given) >= sizeof names->text)
    return compare_usage(args, "--backends: expected two names, the trusted one first, as in cpu,onednn, not",
                         given);
  snprintf(names->text, sizeof names->text, "%s", given);
  names->text[comma - given] = '\0';
  names->name[0] = names->text;
  names->name[1] = names->text + (comma - given) + 1;
  if (strcmp(names->name[0], names->name[1]) == 0)
    return compare_usage(args, "--backends: a backend cannot be compared with itself:", given);
  return CLI_OK;
}

/* Opens the run with [backend] use set to one backend. */
static int compare_open_run(tn_context *context, const cli_args *args, const char *backend, tn_run **run) {
  cli_args with = *args;
  char use[300];
  snprintf(use, sizeof use, "backend.use=%s", backend);
  if (with.n_set == CLI_MAX_LIST) return compare_usage(args, "too many of one option:", "--set");
  with.set[with.n_set++] = use;
  return cli_open_run(context, &with, run);
}

/* ---- the result as text ---- */

static double compare_number(const json_t *object, const char *key) {
  const json_t *v = json_object_get(object, key);
  return json_is_number(v) ? json_number_value(v) : INFINITY;
}

static const char *compare_text(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

/* "[0, 3, 7]" */
static void compare_print_index(const json_t *launch) {
  const json_t *list = json_object_get(launch, "at"), *one;
  size_t i;
  json_array_foreach(list, i, one) printf("%s%lld", i > 0 ? ", " : "[", json_integer_value(one));
  printf("%s", json_array_size(list) > 0 ? "]" : "");
}

static void compare_print_launch(const json_t *one) {
  printf("%-26.26s %-24.24s %-22.22s %-5s %-10s %9.3g %9.3g %8.2g  %-9s ", compare_text(one, "name"),
         compare_text(one, "op"), compare_text(one, "kernel"), compare_text(one, "dtype"),
         compare_text(one, "layout"), compare_number(one, "largest"), compare_number(one, "ulp"),
         compare_number(one, "share"), compare_text(one, "verdict"));
  compare_print_index(one);
  printf("\n");
}

static bool compare_is_fault(const json_t *launch) {
  const char *verdict = compare_text(launch, "verdict");
  return strstr(verdict, "departs") != NULL || strcmp(verdict, "unsteady") == 0;
}

/* Launches that depart come first, then those that use most of their tolerance. */
static int compare_order(const void *a, const void *b) {
  const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
  double p = compare_number(x, "share"), q = compare_number(y, "share");
  if (compare_is_fault(x) != compare_is_fault(y)) return compare_is_fault(x) ? -1 : 1;
  return (p < q) - (p > q);
}

enum { COMPARE_SHOWN = 20 };

static void compare_print_table(const json_t *json, bool all) {
  const json_t *list = json_object_get(json, "launches"), *one;
  size_t i, n = 0, total = json_array_size(list);
  const json_t **sorted = malloc((total + 1) * sizeof(json_t *));
  if (sorted == NULL) return;
  json_array_foreach(list, i, one) if (json_object_get(one, "skipped") == NULL) sorted[n++] = one;
  qsort(sorted, n, sizeof *sorted, compare_order);
  printf("%-26s %-24s %-22s %-5s %-10s %9s %9s %8s  %-9s %s\n", "name", "op", "kernel", "dtype", "layout",
         "largest", "ulp", "of tol.", "verdict", "at");
  for (i = 0; i < n && (all || i < COMPARE_SHOWN); i++) compare_print_launch(sorted[i]);
  if (i < n) printf("... %zu more, which use less of their tolerance; --all prints them\n", n - i);
  json_array_foreach(list, i, one) if (json_object_get(one, "skipped") != NULL)
      printf("%-26.26s not compared: %s\n", compare_text(one, "name"), compare_text(one, "skipped"));
  free(sorted);
}

static void compare_print_losses(const json_t *json) {
  const json_t *list = json_object_get(json, "losses"), *names = json_object_get(json, "backends"), *one;
  size_t i;
  printf("\n%5s %14s %14s %12s\n", "step", json_string_value(json_array_get(names, 0)),
         json_string_value(json_array_get(names, 1)), "difference");
  json_array_foreach(list, i, one) printf(
      "%5lld %14.9g %14.9g %12.3g\n", json_integer_value(json_object_get(one, "at_step")),
      compare_number(one, "reference"), compare_number(one, "tested"), compare_number(one, "difference"));
}

/* "the first op that departs: conv2d of conv1 (net.ini:14), kernel ..." */
static void compare_print_first(const json_t *json) {
  const json_t *first = json_object_get(json, "first");
  const char *where = compare_text(first, "where"), *file = compare_text(json, "file");
  long long repetition = json_integer_value(json_object_get(first, "repetition"));
  if (!json_is_object(first)) return;
  printf("the first op that departs: %s, '%s'%s%s%s, in step %lld: kernel %s of plugin %s",
         compare_text(first, "op"), compare_text(first, "name"), *where ? " (" : "", where, *where ? ")" : "",
         json_integer_value(json_object_get(first, "at_step")), compare_text(first, "kernel"),
         compare_text(first, "plugin"));
  if (repetition > 1) printf(", at launch %lld with the same operands", repetition);
  printf("; ");
  compare_print_index(first);
  printf(" is %.9g, expected %.9g\n", compare_number(first, "found"), compare_number(first, "expected"));
  if (*file)
    printf("`tenon compare FILE.ini --backends %s,%s --repeat %s` repeats it alone\n",
           json_string_value(json_array_get(json_object_get(json, "backends"), 0)),
           json_string_value(json_array_get(json_object_get(json, "backends"), 1)), file);
}

static void compare_print(const json_t *json, bool all) {
  compare_print_table(json, all);
  compare_print_losses(json);
  printf(
      "\n%lld launches compared, %lld depart%s, %lld not compared; at most %.1f MiB of values on the host\n",
      json_integer_value(json_object_get(json, "compared")),
      json_integer_value(json_object_get(json, "departing")),
      json_integer_value(json_object_get(json, "departing")) == 1 ? "s" : "",
      json_integer_value(json_object_get(json, "skipped")), compare_number(json, "host_mib"));
  compare_print_first(json);
}

/* ---- the command ---- */

/* The result of --repeat. */
static void compare_print_repeated(const json_t *json) {
  printf("%s: kernel %s of plugin %s, %s: ", compare_text(json, "name"), compare_text(json, "kernel"),
         compare_text(json, "plugin"), compare_text(json, "verdict"));
  printf("the largest difference is %.3g, %.3g ulp, %.2g of the tolerance", compare_number(json, "largest"),
         compare_number(json, "ulp"), compare_number(json, "share"));
  if (json_array_size(json_object_get(json, "at")) > 0) {
    printf(", at ");
    compare_print_index(json);
    printf(": %.9g, expected %.9g", compare_number(json, "found"), compare_number(json, "expected"));
  }
  printf("; %lld launch%s\n", json_integer_value(json_object_get(json, "repetition")),
         json_integer_value(json_object_get(json, "repetition")) == 1 ? "" : "es");
}

static int compare_report(const cli_args *args, const char *text) {
  json_t *json = cli_load_plain(text);
  int code = json_is_true(json_object_get(json, "agree")) ? CLI_OK : CLI_DIFFERS;
  if (args->json)
    printf("%s\n", text);
  else if (args->repeat)
    compare_print_repeated(json);
  else
    compare_print(json, args->all);
  json_decref(json);
  return code;
}

static int compare_runs(const cli_args *args, tn_run *run, tn_run *reference) {
  const tn_compare_options options = {.struct_size = sizeof options,
                                      .steps = (int32_t)args->steps,
                                      .launches = (int32_t)args->launches,
                                      .file = args->output ? args->output : "departs.safetensors"};
  char *json = NULL;
  tn_status status = args->repeat ? tn_run_repeat_launch(run, reference, args->repeat, &json)
                                  : tn_run_compare_with(run, reference, &options, &json);
  int code = status == TN_OK ? compare_report(args, json) : cli_fail(args, run, status);
  tn_string_free(run, json);
  return code;
}

static int compare_run(tn_context *context, const cli_args *args) {
  tn_run *reference = NULL, *run = NULL;
  compare_names names;
  int code = compare_read_names(args, &names);
  if (code == CLI_OK) code = compare_open_run(context, args, names.name[0], &reference);
  if (code == CLI_OK) code = compare_open_run(context, args, names.name[1], &run);
  if (code == CLI_OK) code = compare_runs(args, run, reference);
  tn_run_close(run);
  tn_run_close(reference);
  return code;
}

const cli_command command_compare = {.name = "compare",
                                     .words = "FILE.ini",
                                     .doc = "compare two backends on a model, op by op",
                                     .min_words = 1,
                                     .max_words = 1,
                                     .options = CLI_SET | CLI_JSON | CLI_WEIGHTS | CLI_COMPARE,
                                     .run = compare_run};
