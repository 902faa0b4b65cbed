/* Resumed trainings of optimizers, and the launches of limits and averages around them. Each optimizer is
 * compared with its peer in tests/integration/recipes. */
#include "tensors.h"

#include <stdbool.h>

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

/* "adamw lr=0.01 schedule.type=cosine" becomes options of the program. */
static void train(const char *key, int run, const char *more) {
  char line[1024], copy[256];
  snprintf(copy, sizeof copy, "%s", key);
  snprintf(line, sizeof line, "train net.ini --quiet --set run.name=%d %s", run, more);
  for (char *word = strtok(copy, " "), *name = word; word; word = strtok(NULL, " ")) {
    size_t n = strlen(line), value = strcspn(word, "=");
    bool other = strcspn(word, ".") < value; /* a key of another section */
    snprintf(line + n, sizeof line - n, " --set %s%s%s", other ? "" : "optimizer.",
             word == name ? "type=" : "", word);
  }
  if (program_run("%s", line) != 0) fail_msg("%s: %s", line, program_err);
}

/* All kinds of state: vectors, one number for all, averages, and those of one parameter. */
static const char *const kinds[] = {"nadam lr=0.01", "schedule_free_adamw lr=0.02",
                                    "muon lr=0.02 products=f32", "lion lr=0.01 cautious=yes lookahead=3",
                                    "adafactor"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void expect_same(const char *what, int run, int other) {
  char a[64], b[64];
  static const char *const names[] = {"w", "m"};
  snprintf(a, sizeof a, "runs/%d/checkpoints/last/model.safetensors", run);
  snprintf(b, sizeof b, "runs/%d/checkpoints/last/model.safetensors", other);
  for (int i = 0; i < 2; i++) {
    double distance = tensor_distance(a, b, names[i]);
    if (!(distance == 0)) fail_msg("%s: %s differs by %g", what, names[i], distance);
  }
}

static void resuming_is_exact(void **state) {
  (void)state;
  write_data();
  for (int i = 0; i < KINDS; i++) {
    train(kinds[i], 2 * i, "--set run.epochs=3");
    train(kinds[i], 2 * i + 1, "--set run.epochs=3 --set run.max_steps=17");
    train(kinds[i], 2 * i + 1, "--set run.epochs=3 --resume auto");
    expect_same(kinds[i], 2 * i, 2 * i + 1);
  }
}

static double launches(const char *more) {
  return program_number(program_json(0, "plan net.ini --set optimizer.type=adamw %s", more), "launches");
}

/* Elementwise, they are part of the launch of the optimizer. */
static void one_launch_updates_all(void **state) {
  (void)state;
  write_data();
  double plain = launches("");
  assert_true(plain > 0 && launches("--set optimizer.lookahead=5 --set optimizer.no_decay=yes") == plain);
  assert_true(launches("--set optimizer.layer_decay=0.5 --set optimizer.no_decay=yes") == plain);
  assert_true(launches("--set optimizer.cautious=yes") > plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(resuming_is_exact, program_open, program_close),
      cmocka_unit_test_setup_teardown(one_launch_updates_all, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
