/* cudnn_table TENON MODELS [TABLE]: plans training steps for devices that files describe, and prints a line
 * for each engine of cuDNN: device, precision, model, kernel, engine, launches, greatest workspace. With a
 * table: compares. A launch that an own kernel has taken over, and so a lost fusion, is a difference. Exits
 * with 77 where there is no cuDNN, or one of another version than the table's. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cudnn/library.h"

enum { SKIPPED = 77, MOST_LINES = 64, TEXT = 1 << 16 };

/* Launches of one kernel with one engine. */
typedef struct table_line {
  char kernel[64], engine[64];
  int launches;
  long long workspace;
} table_line;

static char table[TEXT];
static size_t length;

/* A model, and options of its plan. */
typedef struct table_model {
  const char *name, *path, *options;
} table_model;

static json_t *plan(const char *tenon, const char *path, const char *options, const char *device,
                    const char *precision) {
  char command[2048];
  snprintf(command, sizeof command,
           "'%s' plan '%s' --quiet --json --device " DEVICES "/%s.json --set precision.policy=%s %s", tenon,
           path, device, precision, options);
  FILE *pipe = popen(command, "r");
  json_t *json = pipe != NULL ? json_loadf(pipe, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
  if (pipe != NULL && pclose(pipe) != 0) {
    fprintf(stderr, "%s fails\n", command);
    json_decref(json);
    return NULL;
  }
  return json;
}

static const char *text_of(const json_t *op, const char *key) {
  const char *text = json_string_value(json_object_get(op, key));
  return text != NULL ? text : "?";
}

static int wanted(const char *kernel) {
  return strncmp(kernel, "cudnn_", 6) == 0 || strncmp(kernel, "cuda_conv2d", 11) == 0 ||
         strncmp(kernel, "cuda_attention", 14) == 0;
}

static void add_launch(table_line *lines, int *n, const json_t *op) {
  const char *kernel = text_of(op, "kernel"), *engine = text_of(op, "variant");
  long long workspace = json_integer_value(json_object_get(op, "workspace"));
  int i = 0;
  if (!wanted(kernel)) return;
  while (i < *n && (strcmp(lines[i].kernel, kernel) != 0 || strcmp(lines[i].engine, engine) != 0)) i++;
  if (i == MOST_LINES) return;
  if (i == *n) {
    lines[(*n)++] = (table_line){.launches = 0};
    snprintf(lines[i].kernel, sizeof lines[i].kernel, "%s", kernel);
    snprintf(lines[i].engine, sizeof lines[i].engine, "%s", engine);
  }
  lines[i].launches++;
  if (workspace > lines[i].workspace) lines[i].workspace = workspace;
}

static int by_kernel(const void *a, const void *b) {
  const table_line *x = a, *y = b;
  int order = strcmp(x->kernel, y->kernel);
  return order != 0 ? order : strcmp(x->engine, y->engine);
}

static int add_plan(const char *tenon, const char *folder, const table_model *model, const char *device,
                    const char *precision) {
  char path[1024];
  table_line lines[MOST_LINES];
  int n = 0;
  size_t i;
  const json_t *op;
  snprintf(path, sizeof path, "%s/%s.ini", folder, model->path);
  json_t *json = plan(tenon, path, model->options, device, precision);
  if (json == NULL) return 0;
  json_array_foreach(json_object_get(json, "ops"), i, op) add_launch(lines, &n, op);
  json_decref(json);
  qsort(lines, (size_t)n, sizeof *lines, by_kernel);
  for (int k = 0; k < n; k++)
    length += (size_t)snprintf(table + length, TEXT - length, "%-13s %-5s %-9s %-32s %-20s %3d %8.2f\n",
                               device, precision, model->name, lines[k].kernel, lines[k].engine,
                               lines[k].launches, (double)lines[k].workspace / 1048576);
  return 1;
}

static int add_plans(const char *tenon, const char *folder) {
  static const char *const devices[] = {"made_up_h200", "made_up_a100"};
  static const char *const precisions[] = {"fp16", "bf16", "tf32"};
  static const table_model models[] = {
      {"resnet18", "resnet18", ""},
      {"resnet50", "resnet50", ""},
      {"vgg11", "vgg11", ""},
      {"lenet", "lenet", ""},
      {"char", "gpt_char", ""},
      {"gpt2", "../../../docs/examples/gpt2_124m", "--set data.batch=8"},
      {"gpt2_det", "../../../docs/examples/gpt2_124m", "--set data.batch=8 --set run.deterministic=yes"}};
  for (int d = 0; d < 2; d++)
    for (int p = 0; p < 3; p++)
      for (int m = 0; m < (int)(sizeof models / sizeof *models); m++)
        if (!add_plan(tenon, folder, &models[m], devices[d], precisions[p])) return 0;
  return 1;
}

/* The first line that differs. */
static int compare(const char *path) {
  char line[512];
  int number = 0;
  const char *at = table;
  FILE *file = fopen(path, "r");
  if (file == NULL) return fprintf(stderr, "%s: is missing\n", path), 1;
  for (; fgets(line, sizeof line, file) != NULL; at += strcspn(at, "\n") + (*at != '\0')) {
    size_t n = strcspn(at, "\n") + 1;
    number++;
    if (strncmp(line, at, n) == 0 && strlen(line) == n) continue;
    fclose(file);
    if (number == 1) return printf("skipped: the table is of another version: %s", line), SKIPPED;
    fprintf(stderr,
            "%s:%d: %s differs from this build's %.*s; if that is right, write it anew: cudnn_table > %s\n",
            path, number, line, (int)n, at, path);
    return 1;
  }
  fclose(file);
  if (*at == '\0') return 0;
  fprintf(stderr, "%s: ends before %.*s\n", path, (int)strcspn(at, "\n"), at);
  return 1;
}

int main(int argc, char **argv) {
  static tn_cudnn_library library;
  const tn_cudnn_library *l = &library;
  tn_cudnn_library_open("", &library);
  if (argc < 3) return 2;
  if (*l->absent) return printf("skipped: %s\n", l->absent), SKIPPED;
  length = (size_t)snprintf(
      table, TEXT,
      "# cuDNN %d.%d.%d: device, precision, model, kernel, engine, launches a training step, "
      "greatest workspace in MiB\n",
      (int)(l->version / 10000), (int)(l->version / 100 % 100), (int)(l->version % 100));
  if (!add_plans(argv[1], argv[2])) return 1;
  if (argc > 3) return compare(argv[3]);
  fputs(table, stdout);
  return 0;
}
