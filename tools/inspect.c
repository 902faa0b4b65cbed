/* tools/inspect.c: `tenon inspect [NAME]`: the installed items and their options. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/cli/cli.h"
#include "tenon/inspect.h"

static const char *inspect_text(const json_t *item, const char *key) {
  const char *text = json_string_value(json_object_get(item, key));
  return text ? text : "";
}

static void inspect_print_options(const json_t *item) {
  const json_t *options = json_object_get(item, "options");
  for (size_t i = 0; i < json_array_size(options); i++) {
    const json_t *one = json_array_get(options, i);
    const char *fallback = json_string_value(json_object_get(one, "default"));
    printf("    %-14s %-9s %-14s %-14s %s%s\n", inspect_text(one, "name"), inspect_text(one, "type"),
           fallback ? fallback : "(required)", inspect_text(one, "range"), inspect_text(one, "doc"),
           json_is_true(json_object_get(one, "scheduled")) ? "; may have a schedule" : "");
  }
}

/* The lines of a text, each made plain, of which all but the first are indented as the first. */
static void inspect_print_lines(const char *title, const char *text) {
  for (size_t n; *text; text += n + (text[n] == '\n')) {
    n = strcspn(text, "\n");
    char *line = strndup(text, n);
    if (line != NULL) tn_text_make_plain(line);
    printf("%s%s\n", title, line != NULL ? line : "");
    free(line);
    title = "                 ";
  }
}

/* Gives a plain result back the texts of several lines, whose ends are control characters. */
static void inspect_keep_lines(json_t *plain, const char *text) {
  static const char *const keys[] = {"example", "notes"};
  json_t *from = json_loads(text, 0, NULL);
  const json_t *items = json_object_get(from, "items"), *kept = json_object_get(plain, "items");
  for (size_t i = 0; i < json_array_size(items); i++)
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
      json_t *lines = json_object_get(json_array_get(items, i), keys[k]);
      if (lines != NULL) json_object_set(json_array_get(kept, i), keys[k], lines);
    }
  json_decref(from);
}

static void inspect_print_item(const json_t *item, bool details) {
  printf("%-12s %-20s %s\n", inspect_text(item, "kind"), inspect_text(item, "name"),
         inspect_text(item, "doc"));
  if (!details) return;
  inspect_print_lines("    notes        ", inspect_text(item, "notes"));
  if (*inspect_text(item, "schema")) printf("    schema       %s\n", inspect_text(item, "schema"));
  if (*inspect_text(item, "formula")) printf("    formula      %s\n", inspect_text(item, "formula"));
  if (*inspect_text(item, "gradient")) printf("    gradient     %s\n", inspect_text(item, "gradient"));
  if (*inspect_text(item, "aliases")) printf("    aliases      %s\n", inspect_text(item, "aliases"));
  if (*inspect_text(item, "pattern"))
    printf("    pattern      %s on %s\n", inspect_text(item, "pattern"), inspect_text(item, "family"));
  if (*inspect_text(item, "types")) printf("    types        %s\n", inspect_text(item, "types"));
  inspect_print_lines("    example      ", inspect_text(item, "example"));
  printf("    from         %s %s %s\n", inspect_text(item, "plugin"), inspect_text(item, "version"),
         inspect_text(item, "file"));
  inspect_print_options(item);
}

/* Leaves the items of a kind. Returns the kind of one that was removed, or NULL. */
static const char *inspect_keep_kind(json_t *items, const char *kind) {
  static char other[32];
  other[0] = '\0';
  for (size_t i = json_array_size(items); kind != NULL && i-- > 0;) {
    const char *has = inspect_text(json_array_get(items, i), "kind");
    if (strcmp(has, kind) == 0) continue;
    snprintf(other, sizeof other, "%s", has);
    json_array_remove(items, i);
  }
  return other;
}

static void inspect_print(const cli_args *args, json_t *json, bool details) {
  const json_t *items = json_object_get(json, "items");
  char *text = args->json ? json_dumps(json, JSON_PRESERVE_ORDER) : NULL;
  if (text != NULL) printf("%s\n", text);
  for (size_t i = 0; !args->json && i < json_array_size(items); i++)
    inspect_print_item(json_array_get(items, i), details);
  free(text);
}

/* `tenon inspect source text` is how the list names an item. */
static int inspect_run(tn_context *context, const cli_args *args) {
  char *text = NULL;
  const char *name = args->n_words > 0 ? args->words[args->n_words - 1] : NULL;
  const char *kind = args->n_words > 1 ? args->words[0] : NULL;
  tn_status status = tn_inspect(context, name, &text);
  if (status != TN_OK) return cli_fail(args, context, status);
  json_t *json = args->json ? json_loads(text, 0, NULL) : cli_load_plain(text);
  if (!args->json) inspect_keep_lines(json, text);
  const char *other = inspect_keep_kind(json_object_get(json, "items"), kind);
  int code = CLI_OK;
  if (json_array_size(json_object_get(json, "items")) > 0)
    inspect_print(args, json, name != NULL);
  else
    code = cli_refuse(args, CLI_DATA, "no %s is called \"%s\", but a %s", kind, name, other);
  json_decref(json);
  tn_string_free(context, text);
  return code;
}

const cli_command command_inspect = {.name = "inspect",
                                     .words = "[[KIND] NAME]",
                                     .doc = "plugins, ops, layers and their options",
                                     .min_words = 0,
                                     .max_words = 2,
                                     .options = CLI_JSON,
                                     .run = inspect_run};
