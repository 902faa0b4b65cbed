/* tools/init/init.c: `tenon init PATH`: a configuration for a folder of pictures or sounds, a table, a text,
 * arrays, archives of samples, or tokens; `tenon init zoo:NAME`: a public model. */
#include "tools/init/init.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "tools/cli/cli.h"
#include "tools/init/zoo.h"

enum { INIT_NAME = 64 };

typedef struct init_command {
  char name[INIT_NAME], output[PATH_MAX];
  char path[PATH_MAX], weights[PATH_MAX]; /* as the configuration has them; weights "": none */
  bool folder;
} init_command;

/* ---- names and paths ---- */

/* The last part of the path, without an ending. Other characters than letters, digits, - and _ become _. */
static void init_make_name(const char *path, bool folder, char name[INIT_NAME]) {
  char real[PATH_MAX];
  const char *whole = realpath(path, real) ? real : path, *slash = strrchr(whole, '/');
  snprintf(name, INIT_NAME, "%.*s", INIT_NAME - 1, slash ? slash + 1 : whole);
  char *dot = strrchr(name, '.');
  if (!folder && dot != NULL && dot != name) *dot = '\0';
  for (char *at = name; *at; at++)
    if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_') *at = '_';
  if (name[0] == '\0') snprintf(name, INIT_NAME, "run");
}

/* Lines of a configuration have no control characters, and these have a meaning in it. */
static bool init_can_hold(const char *path) {
  for (const char *c = path; *c != '\0'; c++)
    if (iscntrl((unsigned char)*c) || strchr("#;$\"", *c) != NULL) return false;
  return !isspace((unsigned char)path[strlen(path) - 1]);
}

/* Paths in a configuration are relative to its folder. A path that INI text cannot hold is refused. */
static int init_make_path(const cli_args *args, const char *output, const char *given, char path[PATH_MAX]) {
  char real[PATH_MAX];
  bool beside = strchr(output, '/') == NULL;
  const char *value = beside ? given : realpath(given, real);
  if (value == NULL || strlen(value) >= PATH_MAX)
    return cli_refuse(args, CLI_IO, "%s: cannot be found: %s", given, strerror(errno));
  if (!init_can_hold(value))
    return cli_refuse(
        args, CLI_DATA,
        "%s: has a character that a configuration cannot hold (#, ;, $, \", a control character, "
        "or a blank at the end); give another name, or a link to it",
        given);
  snprintf(path, PATH_MAX, "%s", value);
  return CLI_OK;
}

static int init_prepare(const cli_args *args, init_command *c) {
  struct stat info;
  const char *given = args->words[0];
  if (stat(given, &info) != 0)
    return cli_refuse(args, CLI_IO, "%s: cannot be found: %s", given, strerror(errno));
  c->folder = S_ISDIR(info.st_mode);
  if (!c->folder && !S_ISREG(info.st_mode))
    return cli_refuse(args, CLI_DATA, "%s: expected a folder of pictures, a table or a text file", given);
  init_make_name(args->output ? args->output : given, args->output == NULL && c->folder, c->name);
  if (args->output)
    snprintf(c->output, sizeof c->output, "%s", args->output);
  else
    snprintf(c->output, sizeof c->output, "%s.ini", c->name);
  int code = init_make_path(args, c->output, given, c->path);
  if (code != CLI_OK || args->weights == NULL) return code;
  if (!c->folder) return cli_refuse(args, CLI_USAGE, "--weights: expected with a folder of pictures");
  return init_make_path(args, c->output, args->weights, c->weights);
}

/* ---- writing ---- */

static int init_open(const cli_args *args, const init_command *c, FILE **file) {
  *file = fopen(c->output, "wxe");
  if (*file != NULL) return CLI_OK;
  if (errno == EEXIST)
    return cli_refuse(args, CLI_DATA,
                      "%s: exists, and is not overwritten; remove it, or name another with --output",
                      c->output);
  return cli_refuse(args, CLI_IO, "%s: cannot be written: %s", c->output, strerror(errno));
}

static int init_close(const cli_args *args, const init_command *c, FILE *file) {
  bool written = !ferror(file);
  if (fclose(file) == 0 && written) return CLI_OK;
  return cli_refuse(args, CLI_IO, "%s: cannot be written: %s", c->output, strerror(errno));
}

static void init_print(const init_command *c, const char *kind, const init_choice *choice, const char *what,
                       long long count, bool json) {
  if (json) {
    json_t *result =
        json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:I}", "file", cli_json_text(c->output), "name", c->name,
                  "kind", kind, what, (json_int_t)count, "size", (json_int_t)choice->side, "batch",
                  (json_int_t)choice->batch, "epochs", (json_int_t)choice->epochs);
    char *text = json_dumps(result, JSON_PRESERVE_ORDER);
    printf("%s\n", text);
    free(text);
    json_decref(result);
    return;
  }
  printf("%s is written: %lld %s, size %lld, batch %lld, %lld epochs; train it:\n  tenon train %s\n",
         c->output, count, what, choice->side, choice->batch, choice->epochs, c->output);
}

static void init_print_zoo(const cli_args *args, const init_command *c) {
  json_t *result =
      json_pack("{s:o, s:s, s:s}", "file", cli_json_text(c->output), "name", c->name, "kind", "zoo");
  char *text = args->json ? json_dumps(result, JSON_PRESERVE_ORDER) : NULL;
  if (text != NULL)
    printf("%s\n", text);
  else
    printf("%s is written; look at it:\n  tenon plan %s\n", c->output, c->output);
  free(text);
  json_decref(result);
}

/* Training would end at such a file. */
static void init_warn_unread(const pictures *found) {
  if (found->unread > 0)
    fprintf(
        stderr,
        "tenon init: warning: %lld file%s cannot be read as a picture, such as %s; training reads the next "
        "picture in place of %s (corrupt = skip)\n",
        found->unread, found->unread == 1 ? "" : "s", found->first_unread,
        found->unread == 1 ? "it" : "each");
}

static int init_from_images(tn_context *context, const cli_args *args, const init_command *c) {
  pictures found;
  init_choice choice;
  resnet_shape shape;
  init_file file = {.name = c->name, .path = c->path};
  int code = pictures_survey(args, args->words[0], &found);
  if (code == CLI_OK && args->weights) code = init_survey_resnet(context, args, &shape);
  if (code == CLI_OK) code = init_open(args, c, &file.to);
  if (code != CLI_OK) return code;
  shape.path = c->weights;
  if (args->weights)
    init_write_resnet(&file, &found, &shape, &choice);
  else
    init_write_images(&file, &found, &choice);
  code = init_close(args, c, file.to);
  if (code == CLI_OK) init_warn_unread(&found);
  if (code == CLI_OK) init_print(c, "images", &choice, "classes", found.train.classes, args->json);
  return code;
}

static int init_from_shards(const cli_args *args, const init_command *c) {
  pictures found;
  init_choice choice;
  init_file file = {.name = c->name, .path = c->path};
  int code = init_survey_shards(args, args->words[0], c->path, c->folder, &found);
  if (code == CLI_OK) code = init_open(args, c, &file.to);
  if (code != CLI_OK) return code;
  init_write_images(&file, &found, &choice);
  code = init_close(args, c, file.to);
  if (code == CLI_OK) init_print(c, "shards", &choice, "classes", found.train.classes, args->json);
  return code;
}

static int init_from_text(const cli_args *args, const init_command *c) {
  text_survey found;
  init_choice choice;
  init_file file = {.name = c->name, .path = c->path};
  int code = init_survey_text(args, args->words[0], &found);
  if (code == CLI_OK) code = init_open(args, c, &file.to);
  if (code != CLI_OK) return code;
  init_write_text(&file, &found, &choice);
  code = init_close(args, c, file.to);
  if (code == CLI_OK)
    init_print(c, "text", &choice, found.utf8 ? "characters" : "bytes", found.characters, args->json);
  return code;
}

/* The folder of a file. */
static void init_cut_name(char path[PATH_MAX]) {
  char *slash = strrchr(path, '/');
  if (slash == NULL)
    snprintf(path, PATH_MAX, ".");
  else
    slash[slash == path] = '\0';
}

static int init_from_arrays(const cli_args *args, init_command *c) {
  static array_looks found;
  init_choice choice;
  int code = init_survey_arrays(args, args->words[0], c->folder, &found);
  if (!c->folder) init_cut_name(c->path);
  init_file file = {.name = c->name, .path = c->path};
  if (code == CLI_OK) code = init_open(args, c, &file.to);
  if (code != CLI_OK) return code;
  init_write_arrays(&file, &found, &choice);
  code = init_close(args, c, file.to);
  if (code == CLI_OK) init_print(c, "arrays", &choice, "arrays", found.n, args->json);
  return code;
}

static int init_from_tokens(const cli_args *args, init_command *c) {
  tokens_survey found;
  init_choice choice;
  int code = init_survey_tokens(args, args->words[0], &found);
  init_cut_name(c->path);
  init_file file = {.name = c->name, .path = c->path};
  if (code == CLI_OK) code = init_open(args, c, &file.to);
  if (code != CLI_OK) return code;
  init_write_tokens(&file, &found, &choice);
  code = init_close(args, c, file.to);
  if (code == CLI_OK) init_print(c, "tokens", &choice, "tokens", found.tokens, args->json);
  return code;
}

static int init_from_sounds(const cli_args *args, const init_command *c) {
  sounds_survey found;
  init_choice choice;
  init_file file = {.name = c->name, .path = c->path};
  int code = init_survey_sounds(args, args->words[0], &found);
  if (code == CLI_OK) code = init_open(args, c, &file.to);
  if (code != CLI_OK) return code;
  init_write_sounds(&file, &found, &choice);
  code = init_close(args, c, file.to);
  if (code == CLI_OK) init_print(c, "sounds", &choice, "classes", found.classes, args->json);
  return code;
}

static int init_from_table(const cli_args *args, const init_command *c) {
  table_survey *found = NULL;
  init_choice choice;
  init_file file = {.name = c->name, .path = c->path};
  int code = init_survey_table(args, args->words[0], &found);
  if (code == CLI_OK) code = init_open(args, c, &file.to);
  if (code == CLI_OK) {
    init_write_table(&file, found, &choice);
    code = init_close(args, c, file.to);
  }
  if (code == CLI_OK) init_print(c, "table", &choice, "columns", choice.side, args->json);
  init_free_table(found);
  return code;
}

/* The name of the model is that of the file. */
static int init_from_zoo(const cli_args *args, const char *name) {
  init_command c = {.weights = ""};
  FILE *to = NULL;
  if (name[0] == '\0') return zoo_list(args);
  const zoo_file *model = zoo_find(args, name);
  if (model == NULL) return CLI_USAGE;
  snprintf(c.name, sizeof c.name, "%.*s", INIT_NAME - 1, name);
  snprintf(c.output, sizeof c.output, "%s%s", args->output != NULL ? args->output : name,
           args->output != NULL ? "" : ".ini");
  int code = args->weights != NULL ? init_make_path(args, c.output, args->weights, c.weights) : CLI_OK;
  if (code == CLI_OK) code = init_open(args, &c, &to);
  if (code != CLI_OK) return code;
  zoo_write(to, model, c.weights);
  code = init_close(args, &c, to);
  if (code == CLI_OK) init_print_zoo(args, &c);
  return code;
}

static int init_run(tn_context *context, const cli_args *args) {
  init_command c = {.folder = false};
  const char *model = zoo_word(args->words[0]);
  if (model != NULL) return init_from_zoo(args, model);
  int code = init_prepare(args, &c);
  if (code != CLI_OK) return code;
  if (args->weights == NULL && array_files_are(args->words[0], c.folder)) return init_from_arrays(args, &c);
  if (args->weights == NULL && init_is_shards(args->words[0], c.folder)) return init_from_shards(args, &c);
  if (!c.folder && init_is_tokens(args->words[0])) return init_from_tokens(args, &c);
  if (!c.folder && init_is_table(args->words[0])) return init_from_table(args, &c);
  if (c.folder && args->weights == NULL && init_is_sounds(args->words[0])) return init_from_sounds(args, &c);
  return c.folder ? init_from_images(context, args, &c) : init_from_text(args, &c);
}

const cli_command command_init = {
    .name = "init",
    .words = "PATH|zoo:NAME",
    .doc = "a configuration for a folder of pictures or sounds, a folder for each "
           "class, for a table, for tar archives of samples, for a text, for arrays "
           "(a folder of .npy, or .npz), or for a file of tokens; or a model of the zoo, "
           "which `tenon init zoo:` lists",
    .min_words = 1,
    .max_words = 1,
    .options = CLI_JSON | CLI_OUTPUT | CLI_WEIGHTS,
    .run = init_run};
