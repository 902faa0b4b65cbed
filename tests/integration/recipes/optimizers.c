/* tests/integration/recipes/optimizers.c: ten updates of a vector and a matrix by given gradients
 * (tests/golden/make_optimizers.py). A small network trains in low precision. */
#include "recipes.h"

enum { UPDATES = 10, NUMBERS = 8 };

/* The gradient is the mean of the rows of a batch, so that twice the row and zeros are the row of two
 * devices. */
static void write_data(const recipe_way *way) {
  enum { MOST = 2 * UPDATES * NUMBERS };
  float x[MOST] = {0}, y[MOST] = {0};
  int each = way->two_devices ? 2 : 1;
  for (int t = 0; t < UPDATES; t++)
    for (int i = 0; i < 2 * NUMBERS; i++)
      (i < NUMBERS ? x : y)[t * each * NUMBERS + i % NUMBERS] = (recipe_number(t, i) / 64 - 2) * (float)each;
  file_write_bytes("x.bin", x, (size_t)(UPDATES * each * NUMBERS) * sizeof *x);
  file_write_bytes("y.bin", y, (size_t)(UPDATES * each * NUMBERS) * sizeof *y);
  file_write("half.ini", file_read(OPTIMIZERS "/half.ini", NULL));
}

/* Words with a dot are keys of other sections. */
static void write_case(const recipe_way *way, const char *key, char *options, size_t size) {
  char copy[256];
  snprintf(copy, sizeof copy, "%s", key);
  file_write("net.ini", file_read(OPTIMIZERS "/net.ini", NULL));
  if (way->two_devices) recipe_append(options, size, " --set data.batch=2");
  for (char *word = strtok(copy, " "), *first = word; word != NULL; word = strtok(NULL, " ")) {
    bool other = strcspn(word, ".") < strcspn(word, "=");
    recipe_append(options, size, " --set %s%s%s", other ? "" : "optimizer.", word == first ? "type=" : "",
                  word);
  }
}

static size_t type_length(const char *key) { return strcspn(key, " "); }

static bool is_type(const char *key, const char *type) {
  return type_length(key) == strlen(type) && strncmp(key, type, strlen(type)) == 0;
}

/* They see whole parameters, which are updated one by one, and their state is not divided. */
static bool sees_whole(const char *key) {
  static const char *const types[] = {"adafactor", "adafactor_bv", "adamp",    "lamb",      "lars",
                                      "mars",      "muon",         "novograd", "novogradw", "sgdp"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (is_type(key, types[i])) return true;
  return false;
}

/* Limits of the gradient of a parameter and cautious = yes see whole parameters, too. Without momentum the
 * update of madgrad has its parameters twice. */
static bool is_elementwise(const char *key) {
  static const char *const options[] = {
      "madgrad lr=0.05 momentum=0", "clip=", "clip_layer=", "clip_value=", "clip_adaptive=", "cautious=yes"};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    if (strstr(key, options[i]) != NULL) return false;
  return !sees_whole(key);
}

static bool fits(const recipe_way *way, const char *key) { return !way->divided || !sees_whole(key); }

static bool rounds(const char *key) {
  return is_type(key, "muon") && strstr(key, "products=f32") == NULL && strstr(key, "adamw=yes") == NULL;
}

static bool is_variant(const char *key, const char *other) {
  return type_length(key) == type_length(other) && strncmp(key, other, type_length(key)) == 0;
}

const recipe_kind recipe_optimizers = {.name = "optimizers",
                                       .golden = OPTIMIZERS "/golden.json",
                                       .low_file = "half.ini",
                                       .low_options = "",
                                       .scale = "1e9",
                                       .baseline = "sgd lr=0.1",
                                       .write_data = write_data,
                                       .write_case = write_case,
                                       .one_launch = is_elementwise,
                                       .fits = fits,
                                       .rounds = rounds,
                                       .is_variant = is_variant};
