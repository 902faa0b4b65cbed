/* tests/integration/recipes/losses.c: ten steps of a layer of scores under each loss
 * (tests/golden/make_losses.py). */
#include "recipes.h"

enum { ROWS = 20, NUMBERS = 12, CLASSES = 3 };

#define LAYER    "linear(3, init=zeros, bias_init=zeros)"
#define ADAPTIVE "adaptive_log_softmax(8, cutoffs=[3, 5], div_value=2, head_bias=yes)"

/* In front of the loss of a case; the fields of its targets, and its layer. */
static const struct {
  const char *kind, *file, *type, *layer;
} targets[] = {{"classes: ", "classes.bin", "i32[]", LAYER},
               {"labels: ", "labels.bin", "i32[3]", LAYER},
               {"sequence: ", "sequence.bin", "i32[2]", LAYER},
               {ADAPTIVE ": ", "adaptive.bin", "i32[]", ADAPTIVE},
               {"", "parts.bin", "f32[3]", LAYER}};

static void write_data(const recipe_way *way) {
  float x[ROWS * NUMBERS], parts[ROWS * CLASSES] = {0};
  int32_t classes[ROWS], adaptive[ROWS], labels[ROWS][3], sequence[ROWS][2];
  (void)way;
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < NUMBERS; j++) x[i * NUMBERS + j] = recipe_number(i, j) / 256 - 0.5F;
    int class = (i * i + i / 3) % CLASSES;
    classes[i] = class;
    adaptive[i] = (const int[]){i / 4 % 3, 3 + i / 8 % 2, 5 + i / 4 % 3, i * 5 % 8}[i % 4];
    parts[i * CLASSES + class] = 1;
    labels[i][0] = class;
    labels[i][1] = i % 2 ? (class + 1) % CLASSES : -1;
    labels[i][2] = -1;
    sequence[i][0] = 1 + class % 2;
    sequence[i][1] = 1 + i / 2 % 2;
  }
  file_write_bytes("x.bin", x, sizeof x);
  file_write_bytes("parts.bin", parts, sizeof parts);
  file_write_bytes("classes.bin", classes, sizeof classes);
  file_write_bytes("adaptive.bin", adaptive, sizeof adaptive);
  file_write_bytes("labels.bin", labels, sizeof labels);
  file_write_bytes("sequence.bin", sequence, sizeof sequence);
}

/* Replaces a line of the configuration. */
static void replace(char *text, size_t size, const char *line, const char *by) {
  char rest[2048], *at = strstr(text, line);
  assert_non_null(at);
  snprintf(rest, sizeof rest, "%s", at + strlen(line));
  *at = '\0';
  recipe_append(text, size, "%s%s", by, rest);
}

static void write_case(const recipe_way *way, const char *key, char *options, size_t size) {
  char text[4096], line[512];
  size_t k = 0;
  (void)way, (void)options, (void)size;
  while (strncmp(key, targets[k].kind, strlen(targets[k].kind)) != 0) k++;
  snprintf(text, sizeof text, "%s", file_read(LOSSES "/steps.ini", NULL));
  snprintf(line, sizeof line, "targets = label: %s %s\n", targets[k].file, targets[k].type);
  replace(text, sizeof text, "targets = label: parts.bin f32[3]\n", line);
  snprintf(line, sizeof line, "targets = label: %s\n", targets[k].type);
  replace(text, sizeof text, "targets = label: f32[3]\n", line);
  replace(text, sizeof text, LAYER, targets[k].layer);
  snprintf(line, sizeof line, "loss = %s\n", key + strlen(targets[k].kind));
  replace(text, sizeof text, "loss = l1\n", line);
  file_write("net.ini", text);
}

/* It compares all rows of the batch of a device. */
static bool fits(const recipe_way *way, const char *key) {
  return !way->two_devices || strncmp(key, "info_nce", strlen("info_nce")) != 0;
}

const recipe_kind recipe_losses = {.name = "losses",
                                   .golden = LOSSES "/steps.json",
                                   .low_file = "net.ini",
                                   .low_options = "--set run.epochs=6",
                                   .scale = "1e8",
                                   .write_data = write_data,
                                   .write_case = write_case,
                                   .fits = fits};
