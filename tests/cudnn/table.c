/* cudnn_table [--quick] TENON MODELS [TABLE]: plans the models of a folder, and the examples, for devices
 * that files describe, and prints a line for each engine of cuDNN: device, precision, model, kernel, engine,
 * launches, greatest workspace. With a table: compares. --quick: only the plans that have the fusions which
 * are looked for, and the table's lines of them. A launch that an own kernel has taken over, and so a lost
 * fusion, is a difference. The fusions that cuDNN is known to have must be there in any case. Exits with 77
 * where there is no cuDNN, or one of another version than the table's. */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cudnn/library.h"

enum { SKIPPED = 77, MOST_LINES = 64, MOST_MODELS = 32, PATH = 512, TEXT = 1 << 18 };

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
  char name[32], path[PATH];
  const char *options;
} table_model;

static table_model models[MOST_MODELS];
static int n_models;

static json_t *plan(const char *tenon, const char *path, const char *options, const char *device,
                    const char *precision) {
  char command[PATH + 512];
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

static int add_plan(const char *tenon, const table_model *model, const char *device, const char *precision) {
  table_line lines[MOST_LINES];
  int n = 0;
  size_t i;
  const json_t *op;
  json_t *json = plan(tenon, model->path, model->options, device, precision);
  if (json == NULL) return 0;
  json_array_foreach(json_object_get(json, "ops"), i, op) add_launch(lines, &n, op);
  json_decref(json);
  qsort(lines, (size_t)n, sizeof *lines, by_kernel);
  for (int k = 0; k < n; k++)
    length += (size_t)snprintf(table + length, TEXT - length, "%-13s %-5s %-20s %-32s %-28s %3d %8.2f\n",
                               device, precision, model->name, lines[k].kernel, lines[k].engine,
                               lines[k].launches, (double)lines[k].workspace / 1048576);
  return 1;
}

static int is_planned(const char *device, const char *precision, const char *model);

static int add_plans(const char *tenon) {
  static const char *const devices[] = {"made_up_h200", "made_up_a100"};
  static const char *const precisions[] = {"fp16", "bf16", "tf32"};
  for (int d = 0; d < 2; d++)
    for (int p = 0; p < 3; p++)
      for (int m = 0; m < n_models; m++)
        if (is_planned(devices[d], precisions[p], models[m].name) &&
            !add_plan(tenon, &models[m], devices[d], precisions[p]))
          return 0;
  return 1;
}

/* ---- the models ---- */

static void add_model(const char *name, const char *folder, const char *file, const char *options) {
  table_model *m = &models[n_models++];
  snprintf(m->name, sizeof m->name, "%s", name);
  snprintf(m->path, sizeof m->path, "%s/%s.ini", folder, file);
  m->options = options;
}

/* Without a loss a configuration is planned for inference. */
static int add_inference(const char *folder, const char *file) {
  char path[PATH], line[512];
  add_model("infer18", "/tmp", "cudnn_table_XXXXXX", "");
  int to = mkstemps(models[n_models - 1].path, 4);
  snprintf(path, sizeof path, "%s/%s.ini", folder, file);
  FILE *from = fopen(path, "r"), *copy = to >= 0 ? fdopen(to, "w") : NULL;
  while (from != NULL && copy != NULL && fgets(line, sizeof line, from) != NULL)
    if (strncmp(line, "loss", 4) != 0) fputs(line, copy);
  if (from != NULL) fclose(from);
  return copy != NULL && fclose(copy) == 0 && from != NULL;
}

static int is_example(const struct dirent *entry) {
  size_t n = strlen(entry->d_name);
  return n > 4 && strcmp(entry->d_name + n - 4, ".ini") == 0;
}

static int add_examples(const char *folder) {
  struct dirent **files;
  int n = scandir(folder, &files, is_example, alphasort);
  for (int i = 0; i < n; i++) {
    files[i]->d_name[strlen(files[i]->d_name) - 4] = '\0';
    if (n_models < MOST_MODELS) add_model(files[i]->d_name, folder, files[i]->d_name, "");
    free(files[i]);
  }
  if (n >= 0) free(files);
  return n > 0 && n_models < MOST_MODELS;
}

static int add_models(const char *folder) {
  char examples[PATH];
  snprintf(examples, sizeof examples, "%s/../../../docs/examples", folder);
  add_model("resnet18", folder, "resnet18", "");
  if (!add_inference(folder, "resnet18")) return 0;
  add_model("resnet50", folder, "resnet50", "");
  add_model("vgg11", folder, "vgg11", "");
  add_model("lenet", folder, "lenet", "");
  add_model("char", folder, "gpt_char", "");
  add_model("gpt2", examples, "gpt2_124m", "--set data.batch=8");
  add_model("gpt2_det", examples, "gpt2_124m", "--set data.batch=8 --set run.deterministic=yes");
  return add_examples(examples);
}

/* ---- the fusions ---- */

/* A fusion that cuDNN has on a device, whether its engines are compiled at run time, and the model and the
 * beginning of the kernel that has it. */
typedef struct table_fusion {
  const char *name, *device, *precision, *model, *kernel;
  int compiled;
} table_fusion;

#define FUSION_OF(device)                                                                                      \
  {"convolution, statistics", device, "fp16", "resnet18", "cudnn_conv2d_moments", 0},                          \
      {"convolution of 7 x 7, statistics", device, "fp16", "resnet18", "cudnn_conv2d_moments", 1},             \
      {"scale, bias, ReLU, convolution, statistics", device, "fp16", "resnet18", "cudnn_norm_relu_conv2d", 0}, \
      {"input gradient, gradient of ReLU, sums for the batch norm",                                            \
       device,                                                                                                 \
       "fp16",                                                                                                 \
       "resnet18",                                                                                             \
       "cudnn_conv2d_norm_grad",                                                                               \
       0},                                                                                                     \
      {"scale, bias, ReLU, weight gradient", device, "fp16", "resnet18", "cudnn_norm_relu_grad_weight", 0},    \
      {"convolution, bias, ReLU", device, "fp16", "infer18", "cudnn_conv2d_norm_relu", 0},                     \
      {"convolution, sum, bias, ReLU", device, "fp16", "infer18", "cudnn_conv2d_norm_add_relu", 0},            \
      {"convolution, bias, ReLU", device, "bf16", "infer18", "cudnn_conv2d_norm_relu", 0},                     \
      {"convolution, sum, bias, ReLU", device, "bf16", "infer18", "cudnn_conv2d_norm_add_relu", 0},            \
      {"convolution, ReLU", device, "fp16", "vgg11", "cudnn_conv2d_relu", 0},                                  \
      {"causal attention", device, "fp16", "gpt2", "cudnn_attention_split", 1},                                \
      {"causal attention", device, "bf16", "gpt2", "cudnn_attention_split", 1},                                \
      {"gradient of causal attention", device, "fp16", "gpt2", "cudnn_attention_grad_split", 1},               \
      {"gradient of causal attention", device, "bf16", "gpt2", "cudnn_attention_grad_split", 1}, {             \
    "gradient of causal attention, in order", device, "bf16", "gpt2_det", "cudnn_attention_grad_split", 1      \
  }

static const table_fusion fusions[] = {
    FUSION_OF("made_up_h200"),
    FUSION_OF("made_up_a100"),
    {"convolution, statistics", "made_up_h200", "bf16", "resnet18", "cudnn_conv2d_moments", 1}};

static int quick;

static int is_planned(const char *device, const char *precision, const char *model) {
  for (size_t i = 0; quick && i < sizeof fusions / sizeof *fusions; i++) {
    const table_fusion *f = &fusions[i];
    if (strcmp(device, f->device) == 0 && strcmp(precision, f->precision) == 0 &&
        strcmp(model, f->model) == 0)
      return 1;
  }
  return !quick;
}

/* A line of the table. */
static int shows_fusion(const char *line, const table_fusion *f) {
  char device[64], precision[16], model[64], kernel[64], rest[128];
  return sscanf(line, "%63s %15s %63s %63s %127[^\n]", device, precision, model, kernel, rest) == 5 &&
         strcmp(device, f->device) == 0 && strcmp(precision, f->precision) == 0 &&
         strcmp(model, f->model) == 0 && strncmp(kernel, f->kernel, strlen(f->kernel)) == 0 &&
         (strstr(rest, " compiled") != NULL) == f->compiled;
}

/* The number of lost ones. */
static int check_fusions(void) {
  int lost = 0;
  for (size_t i = 0; i < sizeof fusions / sizeof *fusions; i++) {
    const table_fusion *f = &fusions[i];
    const char *line = table;
    while (*line != '\0' && !shows_fusion(line, f)) line += strcspn(line, "\n") + 1;
    if (*line != '\0') continue;
    fprintf(stderr, "lost on %s in %s: %s (no launch of %s in %s has an engine that is %s)\n", f->device,
            f->precision, f->name, f->kernel, f->model,
            f->compiled ? "compiled at run time" : "there from the start");
    lost++;
  }
  return lost;
}

/* ---- the table ---- */

/* Whether a line of the file is of a plan that was made; its first line is of none. */
static int is_of_plan(const char *line, int number) {
  char device[64], precision[16], model[64];
  return number == 1 || (sscanf(line, "%63s %15s %63s", device, precision, model) == 3 &&
                         is_planned(device, precision, model));
}

/* The first line that differs. */
static int compare(const char *path) {
  char line[512];
  int number = 0;
  const char *at = table;
  FILE *file = fopen(path, "r");
  if (file == NULL) return fprintf(stderr, "%s: is missing\n", path), 1;
  while (fgets(line, sizeof line, file) != NULL) {
    size_t n = strcspn(at, "\n") + 1;
    number++;
    if (!is_of_plan(line, number)) continue;
    if (strncmp(line, at, n) == 0 && strlen(line) == n) {
      at += n;
      continue;
    }
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
  quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
  argc -= quick;
  argv += quick;
  if (argc < 3) return 2;
  if (*l->absent) return printf("skipped: %s\n", l->absent), SKIPPED;
  length =
      (size_t)snprintf(table, TEXT,
                       "# cuDNN %d.%d.%d: device, precision, model, kernel, engine, launches a step, "
                       "greatest workspace in MiB\n",
                       (int)(l->version / 10000), (int)(l->version / 100 % 100), (int)(l->version % 100));
  int planned = add_models(argv[2]) && add_plans(argv[1]);
  for (int m = 0; m < n_models; m++)
    if (strncmp(models[m].path, "/tmp/cudnn_table_", 17) == 0) unlink(models[m].path);
  if (!planned) return 1;
  int lost = check_fusions();
  int different = argc > 3 ? compare(argv[3]) : (fputs(table, stdout), 0);
  return lost > 0 ? 1 : different;
}
