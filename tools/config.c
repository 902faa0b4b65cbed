/* tools/config.c: `tenon config check|show FILE.ini`, `tenon config explain KEY`. */
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"
#include "tenon/inspect.h"

static int config_usage(const cli_args *args) {
  return cli_refuse(args, CLI_USAGE, "expected check FILE.ini, show FILE.ini or explain KEY");
}

/* Checks a configuration as far as possible without data and device memory, by planning it. */
static int config_check(tn_run *run, const cli_args *args) {
  char *json = NULL;
  tn_status status = tn_run_plan(run, NULL, &json, NULL);
  if (status == TN_OK && !args->json)
    printf("%s is fine\n", args->words[0]);
  else if (status == TN_OK)
    printf("{\"status\": \"ok\"}\n");
  tn_string_free(run, json);
  return status == TN_OK ? CLI_OK : cli_fail(args, run, status);
}

/* The configuration may be another person's. A line is made plain by itself. */
static void config_print_plain(char *text) {
  for (char *line; (line = strsep(&text, "\n")) != NULL;) {
    tn_text_make_plain(line);
    printf("%s%s", line, text != NULL ? "\n" : "");
  }
}

static int config_show(tn_run *run, const cli_args *args) {
  char *text = NULL;
  tn_status status = args->all ? tn_run_resolved_config(run, &text) : tn_run_config(run, &text);
  if (status == TN_OK) config_print_plain(text);
  tn_string_free(run, text);
  return status == TN_OK ? CLI_OK : cli_fail(args, run, status);
}

static void config_print_keys(const json_t *json) {
  const json_t *keys = json_object_get(json, "keys");
  printf("[%s] %s\n", json_string_value(json_object_get(json, "section")),
         json_string_value(json_object_get(json, "doc")));
  for (size_t i = 0; i < json_array_size(keys); i++) {
    const json_t *one = json_array_get(keys, i);
    const char *fallback = json_string_value(json_object_get(one, "default")),
               *range = json_string_value(json_object_get(one, "range"));
    printf("  %-14s %-9s %-12s %-16s %s\n", json_string_value(json_object_get(one, "name")),
           json_string_value(json_object_get(one, "type")), fallback ? fallback : "(required)",
           range ? range : "", json_string_value(json_object_get(one, "doc")));
  }
}

/* Keys of the item that the section names are not among its own. */
static void config_print_pointer(const json_t *json) {
  static const char *const pointers[][2] = {{"data", "[data] source or transforms"},
                                            {"optimizer", "[optimizer] type"},
                                            {"schedule", "[schedule] type"},
                                            {"precision", "[precision] policy"},
                                            {"backend", "[backend] use"},
                                            {"model", "[model] layers"}};
  const char *section = json_string_value(json_object_get(json, "section"));
  if (json_array_size(json_object_get(json, "keys")) < 2 || section == NULL) return;
  for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
    if (strcmp(section, pointers[i][0]) == 0)
      printf("More options: `tenon inspect NAME` with the name in %s.\n", pointers[i][1]);
}

static int config_explain(tn_context *context, const cli_args *args) {
  char *text = NULL;
  tn_status status = tn_explain(context, args->words[0], &text);
  if (status != TN_OK) return cli_fail(args, context, status);
  if (args->json) {
    printf("%s\n", text);
  } else {
    json_t *json = cli_load_plain(text);
    config_print_keys(json);
    config_print_pointer(json);
    json_decref(json);
  }
  tn_string_free(context, text);
  return CLI_OK;
}

static int config_run(tn_context *context, const cli_args *args) {
  cli_args rest = *args;
  const char *what = args->words[0];
  tn_run *run = NULL;
  rest.words[0] = args->words[1];
  rest.n_words = 1;
  if (strcmp(what, "explain") == 0) return config_explain(context, &rest);
  if (strcmp(what, "check") != 0 && strcmp(what, "show") != 0) return config_usage(args);
  int code = cli_open_run(context, &rest, &run);
  if (code != CLI_OK) return code;
  code = strcmp(what, "check") == 0 ? config_check(run, &rest) : config_show(run, &rest);
  tn_run_close(run);
  return code;
}

const cli_command command_config = {.name = "config",
                                    .words = "check|show|explain FILE.ini|KEY",
                                    .doc = "check a configuration, show it resolved, or explain a key",
                                    .min_words = 2,
                                    .max_words = 2,
                                    .options = CLI_SET | CLI_JSON | CLI_CONFIG,
                                    .run = config_run};
