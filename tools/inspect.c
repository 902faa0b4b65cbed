/* tools/inspect.c: `tenon inspect [NAME]`: what is installed. */
#include <jansson.h>

#include "tools/cli.h"
#include "tenon/inspect.h"

static const char *text_of(const json_t *item, const char *key) {
  const char *text = json_string_value(json_object_get(item, key));
  return text ? text : "";
}

static void print_options(const json_t *item) {
  const json_t *options = json_object_get(item, "options");
  for (size_t i = 0; i < json_array_size(options); i++) {
    const json_t *one = json_array_get(options, i);
    const char *fallback = json_string_value(json_object_get(one, "default"));
    printf("    %-14s %-9s %-14s %-14s %s\n", text_of(one, "name"), text_of(one, "type"),
           fallback ? fallback : "(required)", text_of(one, "range"), text_of(one, "doc"));
  }
}

static void print_item(const json_t *item, bool whole) {
  printf("%-12s %-20s %s\n", text_of(item, "kind"), text_of(item, "name"), text_of(item, "doc"));
  if (!whole) return;
  if (*text_of(item, "schema")) printf("    schema       %s\n", text_of(item, "schema"));
  if (*text_of(item, "formula")) printf("    formula      %s\n", text_of(item, "formula"));
  if (*text_of(item, "pattern"))
    printf("    pattern      %s on %s\n", text_of(item, "pattern"), text_of(item, "family"));
  printf("    from         %s %s %s\n", text_of(item, "plugin"), text_of(item, "version"),
         text_of(item, "file"));
  print_options(item);
}

static int run_inspect(tn_context *context, const cli_args *args) {
  char *text = NULL;
  const char *name = args->n_words > 0 ? args->words[0] : NULL;
  tn_status status = tn_inspect(context, name, &text);
  if (status != TN_OK) return cli_fail(context, status);
  if (args->json) {
    printf("%s\n", text);
  } else {
    json_t *json = json_loads(text, 0, NULL), *items = json_object_get(json, "items");
    for (size_t i = 0; i < json_array_size(items); i++) print_item(json_array_get(items, i), name != NULL);
    json_decref(json);
  }
  tn_string_free(context, text);
  return CLI_OK;
}

const cli_command command_inspect = {.name = "inspect",
                                     .words = "[NAME]",
                                     .doc = "plugins, ops, layers and their options",
                                     .min_words = 0,
                                     .max_words = 1,
                                     .options = CLI_JSON,
                                     .run = run_inspect};
