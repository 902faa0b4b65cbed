/* The optimizers after ten updates by given gradients, against those of PyTorch and timm
 * (tests/golden/make_optimizers.py). */
#include "tensors.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

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
  file_write("half.ini", file_read(OPTIMIZERS "/half.ini", &n));
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

/* "adamw lr=0.01 schedule.type=cosine" becomes options of the program. */
static void train_file(const char *file, const char *key, int run, const char *more) {
  char line[1024], copy[256];
  snprintf(copy, sizeof copy, "%s", key);
  snprintf(line, sizeof line, "train %s --quiet --set run.name=%d %s", file, run, more);
  for (char *word = strtok(copy, " "), *name = word; word; word = strtok(NULL, " ")) {
    size_t n = strlen(line), value = strcspn(word, "=");
    bool other = strcspn(word, ".") < value; /* a key of another section */
    snprintf(line + n, sizeof line - n, " --set %s%s%s", other ? "" : "optimizer.",
             word == name ? "type=" : "", word);
  }
  if (program_run("%s", line) != 0) fail_msg("%s: %s", line, program_err);
}

static void train(const char *key, int run, const char *more) { train_file("net.ini", key, run, more); }

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

/* All kinds of state: vectors, one number for all, averages, and those of one parameter. */
static const char *const kinds[] = {"nadam lr=0.01", "schedule_free_adamw lr=0.02",
                                    "muon lr=0.02 products=f32", "lion lr=0.01 cautious=yes lookahead=3",
                                    "adafactor"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void expect_same(const char *what, int run, int other, double within) {
  char a[64], b[64];
  static const char *const names[] = {"w", "m"};
  snprintf(a, sizeof a, "runs/%d/checkpoints/last/model.safetensors", run);
  snprintf(b, sizeof b, "runs/%d/checkpoints/last/model.safetensors", other);
  for (int i = 0; i < 2; i++) {
    double distance = tensor_distance(a, b, names[i]);
    if (!(distance <= within)) fail_msg("%s: %s differs by %g", what, names[i], distance);
  }
}

static void resuming_is_exact(void **state) {
  (void)state;
  write_data();
  for (int i = 0; i < KINDS; i++) {
    train(kinds[i], 2 * i, "--set run.epochs=3");
    train(kinds[i], 2 * i + 1, "--set run.epochs=3 --set run.max_steps=17");
    train(kinds[i], 2 * i + 1, "--set run.epochs=3 --resume auto");
    expect_same(kinds[i], 2 * i, 2 * i + 1, 0);
  }
}

#define TWO_DEVICES                                                                                          \
  "--set data.batch=2 --set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2"

#define HALF "--set precision.policy=fp16 --set precision.init_scale=1e9 "

static void ranks_agree_with_one_device(void **state) {
  (void)state;
  write_data();
  for (int i = 0; i < KINDS; i++) {
    int whole = strcmp(kinds[i], "adafactor") == 0 || strncmp(kinds[i], "muon", 4) == 0;
    train(kinds[i], 2 * i, "--set data.batch=2");
    train(kinds[i], 2 * i + 1, whole ? TWO_DEVICES : TWO_DEVICES " --set distributed.shard=optimizer");
    expect_same(kinds[i], 2 * i, 2 * i + 1, 2e-6);
  }
}

/* Gradients in f16 and bf16, whose regions are apart, and steps that loss scaling skips. */
static void low_precision_trains(void **state) {
  (void)state;
  write_data();
  for (int i = 0; i < 2 * KINDS; i++)
    train(kinds[i / 2], i,
          i % 2 ? "--set precision.policy=fp16 --set precision.init_scale=1e30"
                : "--set precision.policy=bf16");
}

/* They see whole parameters, so that they are updated one by one and their state is not divided. */
static const char *const whole_ones[] = {"adafactor", "adafactor_bv", "adamp",    "lamb",      "lars",
                                         "mars",      "muon",         "novograd", "novogradw", "sgdp"};

static int is_whole(const char *type) {
  for (size_t i = 0; i < sizeof whole_ones / sizeof *whole_ones; i++)
    if (strcmp(type, whole_ones[i]) == 0) return 1;
  return 0;
}

/* The optimizer of a golden case; "": it is that of the case before. */
static void type_of(const char *key, const char *before, char *type) {
  snprintf(type, 32, "%.*s", (int)strcspn(key, " "), key);
  if (strcmp(type, before) == 0) *type = '\0';
}

/* Updates that an epoch skipped, from its line of metrics.jsonl. */
static long skipped_in(const char *epoch) {
  const char *at = epoch != NULL ? strstr(epoch, "\"skipped\": ") : NULL;
  return at != NULL ? strtol(at + strlen("\"skipped\": "), NULL, 10) : -1;
}

/* The weights are finite, and loss scaling has skipped updates of the first epoch and none of the last. */
static void expect_trained(const char *type, int run) {
  static const char event[] = "\"event\": \"epoch\"";
  char path[64];
  size_t n = 0;
  snprintf(path, sizeof path, "runs/%d/checkpoints/last/model.safetensors", run);
  const float *weight = tensor_find(path, "out.weight", &n);
  for (size_t i = 0; i < n; i++)
    if (!isfinite(weight[i])) fail_msg("%s: out.weight[%zu] is %g", type, i, (double)weight[i]);
  snprintf(path, sizeof path, "runs/%d/metrics.jsonl", run);
  const char *first = strstr(file_read(path, &n), event), *last = first;
  for (const char *next = first; next != NULL; next = strstr(next + 1, event)) last = next;
  if (skipped_in(first) <= 0 || skipped_in(last) != 0)
    fail_msg("%s: %ld updates skipped first, %ld last", type, skipped_in(first), skipped_in(last));
}

/* Every optimizer of the goldens in fp16, whose first steps loss scaling skips, on two devices, with a
 * divided state where it is elementwise; then an update is one launch, as that of sgd. */
static void every_optimizer_trains_in_fp16_on_two_devices(void **state) {
  (void)state;
  write_data();
  json_t *cases = json_load_file(OPTIMIZERS "/golden.json", 0, NULL), *golden;
  char type[32], before[32] = "";
  const char *key;
  int run = 0;
  assert_non_null(cases);
  double sgd = program_number(program_json(0, "plan net.ini"), "launches");
  json_object_foreach(cases, key, golden) {
    type_of(key, before, type);
    if (*type == '\0') continue;
    snprintf(before, sizeof before, "%s", type);
    const char *divided = is_whole(type) ? "" : "--set distributed.shard=optimizer";
    char more[384];
    snprintf(more, sizeof more, "%s %s", HALF TWO_DEVICES, divided);
    train_file("half.ini", type, ++run, more);
    expect_trained(type, run);
    double n = program_number(program_json(0, "plan net.ini --set optimizer.type=%s", type), "launches");
    if (!is_whole(type) && n > sgd) fail_msg("%s: %g launches, sgd has %g", type, n, sgd);
  }
  assert_true(run > 25);
  json_decref(cases);
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
      cmocka_unit_test_setup_teardown(optimizers_are_those_of_their_libraries, program_open, program_close),
      cmocka_unit_test_setup_teardown(resuming_is_exact, program_open, program_close),
      cmocka_unit_test_setup_teardown(ranks_agree_with_one_device, program_open, program_close),
      cmocka_unit_test_setup_teardown(low_precision_trains, program_open, program_close),
      cmocka_unit_test_setup_teardown(every_optimizer_trains_in_fp16_on_two_devices, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(one_launch_updates_all, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
