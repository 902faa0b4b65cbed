/* tools/reference/reference.c: `tenon reference FOLDER`: pages about every section, item and command; and
 * `tenon reference --header PLUGIN`. */
#include "tools/reference/reference.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tenon/inspect.h"

static int reference_fail_file(const cli_args *args, const char *path) {
  return cli_refuse(args, CLI_IO, "%s: %s", path, strerror(errno));
}

/* Whether the file is there and has been written by something else. */
static bool reference_is_foreign(const char *path) {
  char head[256] = "";
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  size_t n = fread(head, 1, sizeof head - 1, file);
  head[n] = '\0';
  fclose(file);
  return strstr(head, REFERENCE_MARK) == NULL;
}

/* Opens FOLDER/NAME.md for writing, or refuses. */
static int reference_open(const cli_args *args, const char *name, char path[4096], FILE **file) {
  if (snprintf(path, 4096, "%s/%s.md", args->words[0], name) >= 4096)
    return cli_refuse(args, CLI_IO, "the path of the folder is too long");
  if (reference_is_foreign(path))
    return cli_refuse(args, CLI_DATA,
                      "%s is no page of the reference, and is not overwritten; name another folder", path);
  *file = fopen(path, "we");
  return *file ? CLI_OK : reference_fail_file(args, path);
}

static int reference_close(const cli_args *args, FILE *file, const char *path) {
  bool failed = ferror(file) != 0;
  return fclose(file) != 0 || failed ? reference_fail_file(args, path) : CLI_OK;
}

static int reference_write_page(const cli_args *args, const reference_page *page, const json_t *items) {
  char path[4096];
  FILE *file = NULL;
  int code = reference_open(args, page->file, path, &file);
  if (code != CLI_OK) return code;
  reference_write_items(file, page, items);
  return reference_close(args, file, path);
}

/* The pages that are not about items of a kind. */
static int reference_write_other(const cli_args *args, const char *name, const json_t *inspected) {
  const json_t *items = json_object_get(inspected, "items"),
               *sections = json_object_get(inspected, "sections");
  char path[4096];
  FILE *file = NULL;
  int code = reference_open(args, name, path, &file);
  if (code != CLI_OK) return code;
  if (strcmp(name, "README") == 0)
    reference_write_index(file, items, sections, args->commands);
  else if (strcmp(name, "sections") == 0)
    reference_write_sections(file, sections);
  else
    reference_write_commands(file, args->commands);
  return reference_close(args, file, path);
}

static int reference_write_all(const cli_args *args, const json_t *inspected) {
  static const char *const others[] = {"README", "sections", "commands"};
  int code = CLI_OK;
  if (mkdir(args->words[0], 0777) != 0 && errno != EEXIST) return reference_fail_file(args, args->words[0]);
  for (int i = 0; code == CLI_OK && i < 3; i++) code = reference_write_other(args, others[i], inspected);
  for (const reference_page *p = reference_pages; code == CLI_OK && p->file; p++)
    code = reference_write_page(args, p, json_object_get(inspected, "items"));
  return code;
}

static int reference_run(tn_context *context, const cli_args *args) {
  char *text = NULL;
  if ((args->n_words == 0) == (args->header == NULL))
    return cli_refuse(args, CLI_USAGE, "expected FOLDER or --header PLUGIN; see `tenon reference --help`");
  tn_status status = tn_inspect(context, NULL, &text);
  if (status != TN_OK) return cli_fail(args, context, status);
  json_t *inspected = json_loads(text, 0, NULL);
  int code = args->header != NULL ? reference_write_header(stdout, args, json_object_get(inspected, "items"))
                                  : reference_write_all(args, inspected);
  json_decref(inspected);
  tn_string_free(context, text);
  return code;
}

const cli_command command_reference = {.name = "reference",
                                       .words = "[FOLDER]",
                                       .doc = "pages about every key, item and command, in Markdown; or a C "
                                              "header with the ops of a plugin",
                                       .max_words = 1,
                                       .options = CLI_REFERENCE,
                                       .run = reference_run};
