/* tools/init/zoo.c: see zoo.h. */
#include "tools/init/zoo.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/nearest.h"

enum { ZOO_MOST = 256, ZOO_NAME = 64, ZOO_TOLD = 8 }; /* models, a name, names in a message */
static const char zoo_include[] = "include = ", zoo_header[] = "[weights]\n";

/* Ended by a NULL. */
static const zoo_file zoo_files[] = {
#include "zoo_files.inc"
    {NULL, NULL}};

/* ---- names ---- */

const char *zoo_word(const char *word) { return strncmp(word, "zoo:", 4) == 0 ? word + 4 : NULL; }

static const zoo_file *zoo_file_find(const char *file, size_t n) {
  for (const zoo_file *f = zoo_files; f->file != NULL; f++)
    if (strncmp(f->file + strlen("zoo/"), file, n) == 0 && f->file[strlen("zoo/") + n] == '\0') return f;
  return NULL;
}

/* "resnet18" of zoo/resnet18.ini; false: the file is a part. */
static bool zoo_name(const zoo_file *file, char name[ZOO_NAME]) {
  const char *base = file->file + strlen("zoo/");
  snprintf(name, ZOO_NAME, "%.*s", (int)(strlen(base) - strlen(".ini")), base);
  return strchr(base, '/') == NULL;
}

static int zoo_names(char names[ZOO_MOST][ZOO_NAME]) {
  int n = 0;
  for (const zoo_file *f = zoo_files; f->file != NULL; f++) n += zoo_name(f, names[n]);
  return n;
}

/* A word that is a part of names, as in "resnet", or has their first letters. */
static bool zoo_is_near(const char *word, const char *name) {
  size_t n = strcspn(word, "0123456789_-.");
  return strstr(name, word) != NULL || (n >= 3 && strncmp(word, name, n) == 0);
}

static int zoo_refuse(const cli_args *args, const char *word) {
  static char names[ZOO_MOST][ZOO_NAME];
  const char *all[ZOO_MOST];
  char near[ZOO_TOLD * ZOO_NAME] = "";
  int n = zoo_names(names), told = 0;
  FILE *to = fmemopen(near, sizeof near, "w");
  for (int i = 0; i < n; i++) {
    all[i] = names[i];
    if (to != NULL && zoo_is_near(word, names[i]) && told < ZOO_TOLD)
      fprintf(to, "%s%s", told++ > 0 ? ", " : "; near it: ", names[i]);
  }
  const char *best = nearest_word(word, all, n);
  if (to != NULL && told == 0 && best != NULL) fprintf(to, "; near it: %s", best);
  if (to != NULL) fclose(to);
  return cli_refuse(args, CLI_USAGE, "the zoo has no model '%s'%s; `tenon init zoo:` lists them", word, near);
}

const zoo_file *zoo_find(const cli_args *args, const char *name) {
  char file[ZOO_NAME + 8];
  snprintf(file, sizeof file, "%.*s.ini", ZOO_NAME, name);
  const zoo_file *found = strchr(name, '/') == NULL ? zoo_file_find(file, strlen(file)) : NULL;
  if (found == NULL) zoo_refuse(args, name);
  return found;
}

/* ---- the list ---- */

/* The first line, without "# ". */
static void zoo_doc(const zoo_file *file, char doc[256]) {
  snprintf(doc, 256, "%.*s", (int)strcspn(file->text, "\n") - 2, file->text + 2);
}

int zoo_list(const cli_args *args) {
  char name[ZOO_NAME], doc[256];
  json_t *models = json_array();
  for (const zoo_file *f = zoo_files; f->file != NULL; f++) {
    if (!zoo_name(f, name)) continue;
    zoo_doc(f, doc);
    if (!args->json) printf("%-24s %s\n", name, doc);
    json_array_append_new(models, json_pack("{s:s, s:s}", "name", name, "doc", doc));
  }
  json_t *result = json_pack("{s:o}", "models", models);
  char *text = args->json ? json_dumps(result, JSON_PRESERVE_ORDER) : NULL;
  if (text != NULL) printf("%s\n", text);
  free(text);
  json_decref(result);
  return CLI_OK;
}

/* ---- one file ---- */

/* The end of the section that begins here: the comments in front of the next section belong to that. */
static const char *zoo_section_end(const char *section) {
  const char *next = strstr(section, "\n[");
  if (next == NULL) return section + strlen(section);
  const char *blank = strstr(section, "\n\n");
  return blank != NULL && blank < next ? blank + 1 : next + 1;
}

/* Text without its include line, and with the path of the weights. */
static bool zoo_write_text(FILE *to, const char *text, const char *weights) {
  const char *section = strstr(text, zoo_header), *end = section != NULL ? zoo_section_end(section) : NULL;
  for (const char *line = text; *line != '\0';) {
    int n = (int)strcspn(line, "\n") + 1;
    bool inside = section != NULL && line >= section && line < end;
    if (strncmp(line, zoo_include, strlen(zoo_include)) != 0)
      fprintf(to, "%s%.*s", inside && weights[0] == '\0' ? "# " : "", n, line);
    if (line == section && weights[0] != '\0') fprintf(to, "file = %s\n", weights);
    line += n;
  }
  return section != NULL;
}

/* Parts include no other files. */
void zoo_write(FILE *to, const zoo_file *model, const char *weights) {
  const char *include = strstr(model->text, zoo_include);
  bool mapped = zoo_write_text(to, model->text, weights);
  const char *at = include != NULL ? include + strlen(zoo_include) : "";
  while (*at != '\0' && *at != '\n') {
    size_t n = strcspn(at, ",\n");
    const zoo_file *part = zoo_file_find(at, n);
    fprintf(to, "\n");
    if (part != NULL) mapped = zoo_write_text(to, part->text, weights) || mapped;
    at += n;
    at += strspn(at, ", ");
  }
  if (!mapped && weights[0] != '\0') fprintf(to, "\n%sfile = %s\n", zoo_header, weights);
}
