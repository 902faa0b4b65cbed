/* tests/bench/curves.c: adds a run to a result of curves.sh, or writes the page of a result.
 *
 *     bench_curves add FILE.json CURVE <RUN   adds a run to FILE.json, or replaces the run of the same name
 *     bench_curves page FILE.json FOLDER      writes FOLDER/NAME.md, and FOLDER/NAME_MODEL.svg per model
 *
 * RUN is an object {model, run, ...}. CURVE is a metrics.jsonl, or a golden of tests/golden/curves. */
#include "curves.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- adding a run ---- */

/* The member of a list with this value under `key`, or a new member. */
static json_t *find(json_t *list, const char *key, const char *value) {
  json_t *one;
  size_t i;
  json_array_foreach(list, i, one) {
    if (is(one, key, value)) return one;
  }
  one = json_pack("{s:s}", key, value);
  json_array_append_new(list, one);
  return one;
}

static json_t *list_in(json_t *object, const char *key) {
  json_t *list = json_object_get(object, key);
  if (list) return list;
  json_object_set_new(object, key, list = json_array());
  return list;
}

/* A golden is one object with all curves; a metrics file has one line per step. */
static int read_curve(const char *path, json_t *run) {
  FILE *file = fopen(path, "r");
  if (!file) return perror(path), 66;
  json_t *losses = json_array(), *line;
  while ((line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL))) {
    if (json_object_get(line, "losses")) json_object_update(run, line);
    if (is(line, "event", "step"))
      json_array_append(losses, json_object_get(json_object_get(line, "train"), "loss"));
    json_decref(line);
  }
  if (json_array_size(losses)) json_object_set(run, "losses", losses);
  json_decref(losses);
  fclose(file);
  if (json_object_get(run, "losses")) return 0;
  fprintf(stderr, "bench_curves: %s: has no losses\n", path);
  return 65;
}

static int add(const char *path, const char *curve) {
  json_error_t error;
  json_t *given = json_loadf(stdin, 0, &error);
  if (!given) return fprintf(stderr, "bench_curves: the run on stdin: %s\n", error.text), 65;
  json_t *result = access(path, F_OK) == 0 ? json_load_file(path, 0, &error) : json_object();
  if (!result) return fprintf(stderr, "bench_curves: %s: %s\n", path, error.text), 65;
  json_t *model = find(list_in(result, "models"), "model", text(given, "model"));
  json_t *run = find(list_in(model, "runs"), "run", text(given, "run"));
  json_object_clear(run);
  json_object_del(given, "model");
  json_object_update(run, given);
  int failed = read_curve(curve, run);
  if (!failed && json_dump_file(result, path, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)))
    perror(path), failed = 74;
  json_decref(result);
  json_decref(given);
  return failed;
}

/* ---- the page ---- */

static FILE *open_beside(const char *folder, const char *name, const char *model, const char *suffix) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s%s%s", folder, name, *model ? "_" : "", model, suffix);
  FILE *file = fopen(path, "w");
  if (!file) perror(path);
  return file;
}

static int close_file(FILE *file) { return file && !ferror(file) && fclose(file) == 0 ? 0 : 74; }

static int page(const char *path, const char *folder) {
  json_error_t error;
  char name[256];
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
  snprintf(name, sizeof name, "%.*s", dot ? (int)(dot - base) : (int)strlen(base), base);
  json_t *result = json_load_file(path, 0, &error), *model;
  if (!result) return fprintf(stderr, "bench_curves: %s: %s\n", path, error.text), 65;
  FILE *file = open_beside(folder, name, "", ".md");
  if (file) curves_page(file, result, name);
  int failed = close_file(file);
  size_t i;
  json_array_foreach(json_object_get(result, "models"), i, model) {
    file = open_beside(folder, name, text(model, "model"), ".svg");
    if (file) curves_plot(file, model);
    failed |= close_file(file);
  }
  json_decref(result);
  return failed;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "add") == 0) return add(argv[2], argv[3]);
  if (argc == 4 && strcmp(argv[1], "page") == 0) return page(argv[2], argv[3]);
  fprintf(stderr, "usage: bench_curves add FILE.json CURVE <RUN | page FILE.json FOLDER\n");
  return 2;
}
