/* tools/conformance.c: `tenon conformance [PLUGIN.so]`: does a backend, or what a plugin brings, compute what
 * the ops mean? */
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "tenon/conformance.h"

static void say(void *user, const char *line) {
  (void)user;
  fprintf(stderr, "failed: %s\n", line);
}

/* The whole text of a file; the caller's (free). */
static int read_text(const char *path, char **text) {
  FILE *file = fopen(path, "r");
  size_t n = 0, room = 1 << 16;
  *text = file ? malloc(room) : NULL;
  if (*text) n = fread(*text, 1, room - 1, file);
  bool whole = *text && feof(file) && !ferror(file);
  if (*text) (*text)[n] = '\0';
  if (file) fclose(file);
  if (whole) return CLI_OK;
  free(*text);
  *text = NULL;
  fprintf(stderr, "tenon: %s: cannot be read as a list of at most %zu bytes\n", path, room - 1);
  return CLI_IO;
}

static void print_list(const json_t *report, const char *key, const char *title) {
  const json_t *list = json_object_get(report, key);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    if (json_is_string(one))
      printf("%-12s %s\n", title, json_string_value(one));
    else
      printf("%-12s %s: %s\n", title, json_string_value(json_object_get(one, "case")),
             json_string_value(json_object_get(one, "reason")));
  }
}

/* Each failing case comes with the line that runs it alone. */
static void print_again(const json_t *report, const cli_args *args) {
  const json_t *list = json_object_get(report, "failed");
  if (json_array_size(list) > 0 && args->n_words == 0)
    printf("again        tenon conformance --backend %s --case %s\n",
           json_string_value(json_object_get(report, "backend")),
           json_string_value(json_object_get(json_array_get(list, 0), "case")));
}

static void print_report(const json_t *report, const cli_args *args) {
  print_list(report, "unsupported", "unsupported");
  print_list(report, "stale", "stale");
  print_list(report, "failed", "failed");
  print_again(report, args);
  printf("%s (%s): %lld passed, %zu failed, %zu not supported\n",
         json_string_value(json_object_get(report, "backend")),
         json_string_value(json_object_get(report, "device")),
         json_integer_value(json_object_get(report, "passed")),
         json_array_size(json_object_get(report, "failed")) +
             json_array_size(json_object_get(report, "stale")),
         json_array_size(json_object_get(report, "unsupported")));
}

static int finish(tn_device *device, const cli_args *args, char *text) {
  json_t *report = json_loads(text, 0, NULL);
  bool failed = json_array_size(json_object_get(report, "failed")) > 0 ||
                json_array_size(json_object_get(report, "stale")) > 0;
  if (args->json)
    printf("%s\n", text);
  else
    print_report(report, args);
  json_decref(report);
  tn_conformance_free(device, text);
  return failed ? CLI_INTERNAL : CLI_OK;
}

static int run_on(tn_device *device, const cli_args *args, const char *plugin, const char *unsupported) {
  char *text = NULL;
  tn_conformance_options options = {.struct_size = sizeof options,
                                    .only = args->only,
                                    .plugin = plugin,
                                    .unsupported = unsupported,
                                    .draws = args->draws,
                                    .say = args->json || args->quiet ? NULL : say};
  tn_status status = tn_conformance_run(device, &options, &text);
  return status == TN_OK ? finish(device, args, text) : cli_fail(device, status);
}

/* `--set devices=2` is an option of the backend: "devices=2;". */
static int join_options(const cli_args *args, char *text, size_t room) {
  size_t n = 0;
  text[0] = '\0';
  for (int i = 0; i < args->n_set; i++) {
    int added = snprintf(text + n, room - n, "%s;", args->set[i]);
    if (added < 0 || (size_t)added >= room - n) {
      fprintf(stderr, "tenon: --set: too much text for options of a backend\n");
      return CLI_USAGE;
    }
    n += (size_t)added;
  }
  return CLI_OK;
}

static int run_conformance(tn_context *context, const cli_args *args) {
  char options[4096], path[PATH_MAX], *unsupported = NULL;
  tn_device *device = NULL;
  const char *plugin = args->n_words > 0 ? args->words[0] : NULL;
  int code = join_options(args, options, sizeof options);
  if (code == CLI_OK && args->unsupported) code = read_text(args->unsupported, &unsupported);
  if (code != CLI_OK) return code;
  tn_status status = plugin ? tn_context_load(context, plugin) : TN_OK;
  if (plugin && realpath(plugin, path)) plugin = path;
  if (status == TN_OK)
    status = tn_device_open(context, args->backend ? args->backend : "cpu", 0, options, &device);
  code = status == TN_OK ? run_on(device, args, plugin, unsupported) : cli_fail(context, status);
  tn_device_close(device);
  free(unsupported);
  return code;
}

const cli_command command_conformance = {.name = "conformance",
                                         .words = "[PLUGIN.so]",
                                         .doc = "whether a backend or plugin computes what the ops mean",
                                         .min_words = 0,
                                         .max_words = 1,
                                         .options = CLI_SET | CLI_JSON | CLI_CONFORMANCE,
                                         .run = run_conformance};
