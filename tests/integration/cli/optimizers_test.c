/* The optimizers after ten updates by given gradients, against those of PyTorch and timm
 * (tests/golden/make_optimizers.py). */
#include "tensors.h"

#include <math.h>

enum { UPDATES = 10, GRADIENTS = 16 };

/* The rows of the arrays. make_optimizers.py has the same formula. */
static void write_data(void) {
  float x[UPDATES * 8], y[UPDATES * 8];
  size_t n;
  for (int t = 0; t < UPDATES; t++)
    for (int i = 0; i < GRADIENTS; i++)
      (i < 8 ? x : y)[t * 8 + i % 8] = (float)((t * 37 + i * 11 + t * i * 5) % 251) / 64 - 2;
  file_write_bytes("x.bin", x, sizeof x);
  file_write_bytes("y.bin", y, sizeof y);
  file_write("net.ini", file_read(OPTIMIZERS "/net.ini", &n));
}

static void expect_tensor(const char *what, int run, const char *name, const json_t *golden, double within) {
  size_t n = 0;
  char path[64];
  snprintf(path, sizeof path, "runs/%d/checkpoints/last/model.safetensors", run);
  const float *values = tensor_find(path, name, &n);
  assert_non_null(values);
  assert_int_equal(n, json_array_size(golden));
  for (size_t i = 0; i < n; i++) {
    double want = json_number_value(json_array_get(golden, i));
    if (!(fabs((double)values[i] - want) <= within * (1 + fabs(want))))
      fail_msg("%s: %s[%zu] is %.8g, expected %.8g", what, name, i, (double)values[i], want);
  }
}

/* "adamw lr=0.01" becomes options of the program. */
static void train(const char *key, int run, const char *more) {
  char line[1024], copy[256];
  snprintf(copy, sizeof copy, "%s", key);
  snprintf(line, sizeof line, "train net.ini --quiet --set run.name=%d %s", run, more);
  for (char *word = strtok(copy, " "), *name = word; word; word = strtok(NULL, " ")) {
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, " --set optimizer.%s%s", word == name ? "type=" : "", word);
  }
  if (program_run("%s", line) != 0) fail_msg("%s: %s", line, program_err);
}

static void expect_all(const char *more, double within) {
  json_t *cases = json_load_file(OPTIMIZERS "/golden.json", 0, NULL), *golden;
  const char *key;
  int run = 0;
  assert_non_null(cases);
  json_object_foreach(cases, key, golden) {
    train(key, ++run, more);
    expect_tensor(key, run, "w", json_object_get(golden, "w"), within);
    expect_tensor(key, run, "m", json_object_get(golden, "m"), within);
  }
  json_decref(cases);
}

static void optimizers_are_those_of_their_libraries(void **state) {
  (void)state;
  write_data();
  expect_all("", 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(optimizers_are_those_of_their_libraries, program_open, program_close)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
