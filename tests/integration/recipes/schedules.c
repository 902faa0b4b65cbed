/* tests/integration/recipes/schedules.c: ten steps of a layer under each schedule
 * (tests/golden/make_schedules.py).
 */
#include <string.h>

#include "recipes.h"

enum { ROWS = 8, INPUTS = 8, OUTPUTS = 4 };

static void write_data(const recipe_way *way) {
  float x[ROWS * INPUTS], y[ROWS * OUTPUTS];
  (void)way;
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < INPUTS; j++) x[i * INPUTS + j] = recipe_number(i, j) / 128 - 1;
    for (int j = 0; j < OUTPUTS; j++) y[i * OUTPUTS + j] = recipe_number(i, INPUTS + j) / 128 - 1;
  }
  file_write_bytes("x.bin", x, sizeof x);
  file_write_bytes("y.bin", y, sizeof y);
}

static void write_case(const recipe_way *way, const char *key, char *options, size_t size) {
  char text[4096], copy[256];
  (void)way, (void)options, (void)size;
  snprintf(copy, sizeof copy, "%s", key);
  snprintf(text, sizeof text, "%s[schedule]\n", file_read(SCHEDULES "/net.ini", NULL));
  for (char *word = strtok(copy, " "), *first = word; word != NULL; word = strtok(NULL, " "))
    recipe_append(text, sizeof text, "%s%s\n", word == first ? "type=" : "", word);
  file_write("net.ini", text);
}

const recipe_kind recipe_schedules = {.name = "schedules",
                                      .golden = SCHEDULES "/golden.json",
                                      .low_file = "net.ini",
                                      .low_options = "",
                                      .scale = "1e6",
                                      .baseline = "constant factor=0.25 steps=4",
                                      .write_data = write_data,
                                      .write_case = write_case};
