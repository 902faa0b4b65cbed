/* tools/plugin/new_plugin.c: `tenon new-plugin KIND NAME`: a folder with an example under another name, a
 * build file, a test and a README. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "tools/cli/cli.h"
#include "tools/cli/nearest.h"
#include "tools/plugin/examples.h"
#include "tools/plugin/kinds.h"
#include "tools/plugin/rename.h"
#include "tenon/inspect.h"

typedef struct new_plugin {
  const cli_args *args;
  const plugin_kind *kind;
  const char *folder, *name; /* of the folder, and its last part */
  const char *code;          /* of the example */
} new_plugin;

/* ---- texts ---- */

static const char new_plugin_meson[] =
    "# meson setup build && meson test -C build\n"
    "project('@NAME@', 'c', default_options: ['c_std=c11', 'warning_level=2', 'buildtype=release'])\n"
    "\n"
    "tenon = dependency('tenon')\n"
    "math = meson.get_compiler('c').find_library('m', required: false)\n"
    "# a plugin is called by libtenon and does not link it\n"
    "headers = tenon.partial_dependency(compile_args: true, includes: true)\n"
    "plugin = shared_module('@NAME@', '@NAME@.c', name_prefix: '', dependencies: [headers, math])\n"
    "\n"
    "program = find_program(tenon.get_variable('program', default_value: 'tenon'), 'tenon')\n"
    "test('train', program, args: ['train', files('test.ini'), '--plugin', plugin@SET@])\n";

static const char new_plugin_ini[] = "# A short training that uses the @KIND@ '@NAME@'.\n"
                                     "[run]\n"
                                     "epochs = 2\n"
                                     "output =\n"
                                     "@OBSERVERS@"
                                     "\n"
                                     "[data]\n"
                                     "@DATA@"
                                     "\n"
                                     "[model]\n"
                                     "@LAYERS@"
                                     "loss = @LOSS@\n";

static const char new_plugin_readme[] =
    "@NAME@: a plugin of Tenon, begun from @EXAMPLE@.c; docs/plugins/@PAGE@ explains the kind @KIND@.\n"
    "Build and test it: meson setup build && meson test -C build (uninstalled Tenon: "
    "PKG_CONFIG_PATH=BUILD/meson-uninstalled).\n"
    "Use it: tenon train model.ini --plugin build/@NAME@.so, with the lines of test.ini that have the word "
    "@NAME@.\n";

/* A word between @ and its value. */
typedef struct new_plugin_word {
  const char *word, *value;
} new_plugin_word;

static const char *new_plugin_value(const new_plugin_word *words, const char *at, size_t n) {
  for (; words->word != NULL; words++)
    if (strlen(words->word) == n && memcmp(words->word, at, n) == 0) return words->value;
  return NULL;
}

/* Writes a text; a value may have words, too. */
static void new_plugin_fill(FILE *file, const char *text, const new_plugin_word *words) {
  while (*text != '\0') {
    size_t n = *text == '@' ? strcspn(text + 1, "@") : 0;
    const char *value = n > 0 ? new_plugin_value(words, text + 1, n) : NULL;
    if (value == NULL) {
      fputc(*text++, file);
      continue;
    }
    new_plugin_fill(file, value, words);
    text += n + 2;
  }
}

/* ---- files ---- */

static FILE *new_plugin_create(const new_plugin *p, const char *file, char *path, size_t size) {
  snprintf(path, size, "%s/%s", p->folder, file);
  FILE *opened = fopen(path, "wxe");
  if (opened == NULL) cli_refuse(p->args, CLI_IO, "%s: cannot be written: %s", path, strerror(errno));
  return opened;
}

static int new_plugin_close(const new_plugin *p, FILE *file, const char *path) {
  bool written = !ferror(file);
  if (fclose(file) == 0 && written) return CLI_OK;
  return cli_refuse(p->args, CLI_IO, "%s: cannot be written: %s", path, strerror(errno));
}

static int new_plugin_write(const new_plugin *p, const char *file, const char *text, const char *more) {
  char path[4096];
  const new_plugin_word words[] = {
      {"NAME", p->name},
      {"KIND", p->kind->name},
      {"EXAMPLE", p->kind->example},
      {"PAGE", p->kind->page},
      {"DATA", p->kind->data},
      {"LAYERS", p->kind->layers},
      {"LOSS", p->kind->loss},
      {"OBSERVERS", strcmp(p->kind->name, "observer") == 0 ? "observers = @NAME@\n" : ""},
      {"SET", strcmp(p->kind->name, "observer") == 0
                  ? ",\n  '--set', 'observer.@NAME@.file=' + meson.current_build_dir() / '@NAME@.txt'"
                  : ""},
      {"PLUGIN", "', plugin, '"},
      {NULL, NULL}};
  FILE *opened = new_plugin_create(p, file, path, sizeof path);
  if (opened == NULL) return CLI_IO;
  new_plugin_fill(opened, text, words);
  new_plugin_fill(opened, more, words);
  return new_plugin_close(p, opened, path);
}

static int new_plugin_write_code(const new_plugin *p) {
  char path[4096], file[64];
  snprintf(file, sizeof file, "%s.c", p->name);
  FILE *opened = new_plugin_create(p, file, path, sizeof path);
  if (opened == NULL) return CLI_IO;
  rename_print(opened, p->code, p->kind->example, p->kind->also, p->name);
  return new_plugin_close(p, opened, path);
}

/* The line of the second test: its words become a list of Meson. */
static void new_plugin_print_test(const char *arguments, char *line, size_t size) {
  size_t n = (size_t)snprintf(line, size, "test('conformance', program, args: ['conformance'");
  while (*arguments != '\0' && n < size) {
    size_t length = strcspn(arguments, " ");
    bool plugin = strncmp(arguments, "@PLUGIN@", 8) == 0;
    n += (size_t)snprintf(line + n, size - n, plugin ? ", plugin" : ", '%.*s'", (int)length, arguments);
    arguments += length + (arguments[length] == ' ');
  }
  if (n < size) snprintf(line + n, size - n, "], timeout: 120)\n");
}

static int new_plugin_write_all(const new_plugin *p) {
  char sections[512], test[512] = "";
  if (mkdir(p->folder, 0777) != 0)
    return cli_refuse(p->args, errno == EEXIST ? CLI_DATA : CLI_IO, "%s: cannot be made: %s%s", p->folder,
                      strerror(errno), errno == EEXIST ? "; name another folder, or remove this one" : "");
  snprintf(sections, sizeof sections, "%s%s", p->kind->sections ? "\n" : "",
           p->kind->sections ? p->kind->sections : "");
  if (p->kind->conformance) new_plugin_print_test(p->kind->conformance, test, sizeof test);
  int code = new_plugin_write_code(p);
  if (code == CLI_OK) code = new_plugin_write(p, "meson.build", new_plugin_meson, test);
  if (code == CLI_OK) code = new_plugin_write(p, "test.ini", new_plugin_ini, sections);
  return code == CLI_OK ? new_plugin_write(p, "README", new_plugin_readme, "") : code;
}

/* ---- the arguments ---- */

static int new_plugin_fail_kind(const cli_args *args, const char *word) {
  const char *names[32];
  char list[256] = "";
  int n = 0;
  for (const plugin_kind *kind = plugin_kinds; kind->name != NULL; kind++) {
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", n ? ", " : "", kind->name);
    names[n++] = kind->name;
  }
  const char *nearest = nearest_word(word, names, n);
  return cli_refuse(args, CLI_USAGE, "there is no kind '%s'; expected %s%s%s%s", word, list,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* An installed item of the same kind and name would be refused when both are loaded. */
static bool new_plugin_is_installed(tn_context *context, const new_plugin *p) {
  char *text = NULL;
  bool installed = false;
  if (tn_inspect(context, p->name, &text) != TN_OK) return false;
  json_t *json = json_loads(text, 0, NULL), *items = json_object_get(json, "items");
  for (size_t i = 0; i < json_array_size(items); i++)
    installed = installed || strcmp(cli_text(json_array_get(items, i), "kind"), p->kind->item) == 0;
  json_decref(json);
  tn_string_free(context, text);
  return installed;
}

static int new_plugin_check_name(tn_context *context, const new_plugin *p) {
  const char *wrong = NULL;
  if (!rename_is_name(p->name))
    wrong = "expected lower-case letters, digits and '_', beginning with a letter, and no word of C";
  else if (rename_uses(p->code, p->name))
    wrong = "the example uses this name for something else; choose another";
  else if (new_plugin_is_installed(context, p))
    wrong = "an item of this kind and name is installed; choose another name";
  if (wrong == NULL) return CLI_OK;
  return cli_refuse(p->args, CLI_USAGE, "'%s' cannot be the name: %s", p->name, wrong);
}

static const char *new_plugin_example(const plugin_kind *kind) {
  size_t n = strlen(kind->example);
  for (const plugin_example *e = plugin_examples; e->file != NULL; e++)
    if (strncmp(e->file, kind->example, n) == 0 && strcmp(e->file + n, ".c") == 0) return e->text;
  return "";
}

/* "PKG_CONFIG_PATH=... " for a program in a build folder, whose library is not installed; "" for others. */
static void new_plugin_find_pkg_config(char *text, size_t size) {
  char program[PATH_MAX] = "", pc[PATH_MAX + 64];
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  *text = '\0';
  for (int level = 0; level < 2 && n > 0; level++) /* BUILD/tools/tenon */
    if (strrchr(program, '/')) *strrchr(program, '/') = '\0';
  snprintf(pc, sizeof pc, "%s/meson-uninstalled/tenon-uninstalled.pc", program);
  if (n > 0 && access(pc, R_OK) == 0 && strchr(program, '\'') == NULL)
    snprintf(text, size, "PKG_CONFIG_PATH='%s/meson-uninstalled' ", program);
}

static void new_plugin_print(const new_plugin *p, bool json) {
  char pkg_config[PATH_MAX + 64];
  if (json) {
    json_t *result = json_pack("{s:o, s:s, s:s, s:s}", "folder", cli_json_text(p->folder), "kind",
                               p->kind->name, "name", p->name, "example", p->kind->example);
    char *text = json_dumps(result, 0);
    printf("%s\n", text);
    free(text);
    json_decref(result);
    return;
  }
  new_plugin_find_pkg_config(pkg_config, sizeof pkg_config);
  printf("%s/%s.c, meson.build, test.ini and README are written; build and test them:\n"
         "  cd %s && %smeson setup build && meson test -C build\n",
         p->folder, p->name, p->folder, pkg_config);
}

static int new_plugin_run(tn_context *context, const cli_args *args) {
  new_plugin p = {.args = args, .kind = plugin_kind_find(args->words[0]), .folder = args->words[1]};
  if (p.kind == NULL) return new_plugin_fail_kind(args, args->words[0]);
  const char *slash = strrchr(p.folder, '/');
  p.name = slash ? slash + 1 : p.folder;
  p.code = new_plugin_example(p.kind);
  int code = new_plugin_check_name(context, &p);
  if (code == CLI_OK) code = new_plugin_write_all(&p);
  if (code == CLI_OK) new_plugin_print(&p, args->json);
  return code;
}

const cli_command command_new_plugin = {
    .name = "new-plugin",
    .words = "op|kernel|layer|loss|optimizer|schedule|source|transform|precision|observer|backend NAME",
    .doc = "a folder with a plugin to begin with: code, build file, test (docs/plugins)",
    .min_words = 2,
    .max_words = 2,
    .options = CLI_JSON,
    .run = new_plugin_run};
