/* [optimizer] state_dtype: parameters after ten updates with states in 16 and 8 bits, against
 * tests/golden/make_state_dtypes.py; the states in checkpoints; resuming; ranks; launches and bytes. */
#include "tensors.h"

#include <math.h>
#include <stdlib.h>

enum { UPDATES = 10, STRIDE = 97 };
static const char *const names[] = {"w", "m", "s"};
static const int counts[] = {64 * 64, 65 * 64, 8};

/* The gradients of a parameter, times its elements. make_state_dtypes.py has the same formula. */
static void fill(float *rows, int updates, int count, int shift) {
  for (int t = 0; t < updates; t++)
    for (int i = shift; i < count + shift; i++) {
      double value = (double)((t * 37 + i * 11 + t * i * 5) % 251) / 64 - 2;
      *rows++ = (float)ldexp(value, -(i % 13));
    }
}

static void write_data(void) {
  static const int shifts[] = {0, 3, 7};
  static float rows[UPDATES * 65 * 64];
  size_t n;
  for (int p = 0; p < 3; p++) {
    fill(rows, UPDATES, counts[p], shifts[p]);
    file_write_bytes(p == 0   ? "x.bin"
                     : p == 1 ? "y.bin"
                              : "z.bin",
                     rows, sizeof *rows * (size_t)(UPDATES * counts[p]));
  }
  file_write("net.ini", file_read(STATE_DTYPES "/net.ini", &n));
}

/* "adamw state_dtype=int8" becomes options of the program. */
static void train(const char *key, const char *run, const char *more) {
  char line[512], copy[128];
  snprintf(copy, sizeof copy, "%s", key);
  snprintf(line, sizeof line, "train net.ini --quiet --set run.name=%s %s", run, more);
  for (char *word = strtok(copy, " "), *name = word; word; word = strtok(NULL, " ")) {
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, " --set optimizer.%s%s", word == name ? "type=" : "", word);
  }
  if (program_run("%s", line) != 0) fail_msg("%s: %s", line, program_err);
}

static const char *last(const char *run, const char *file) {
  static char paths[4][96];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "runs/%s/checkpoints/last/%s.safetensors", run, file);
  return path;
}

static void expect_tensor(const char *what, const char *run, int p, const json_t *golden, size_t stride) {
  size_t n = 0;
  const float *values = tensor_find(last(run, "model"), names[p], &n);
  assert_non_null(values);
  assert_int_equal((n + stride - 1) / stride, json_array_size(golden));
  for (size_t i = 0; i < json_array_size(golden); i++) {
    double want = json_number_value(json_array_get(golden, i)), value = (double)values[i * stride];
    if (!(fabs(value - want) <= 1e-6))
      fail_msg("%s: %s[%zu] is %.8g, expected %.8g", what, names[p], i * stride, value, want);
  }
}

static void parameters_are_those_of_the_reference(void **state) {
  (void)state;
  write_data();
  json_t *cases = json_load_file(STATE_DTYPES "/golden.json", 0, NULL), *golden;
  const char *key;
  char run[16];
  int runs = 0;
  assert_non_null(cases);
  json_object_foreach(cases, key, golden) {
    if (strcmp(key, "large") == 0) continue;
    snprintf(run, sizeof run, "%d", runs++);
    train(key, run, "");
    for (int p = 0; p < 3; p++) expect_tensor(key, run, p, json_object_get(golden, names[p]), STRIDE);
  }
  assert_int_equal(runs, 8);
  json_decref(cases);
}

/* A loop over groups of blocks is one launch, which writes in place, also where it may skip the update. */
static void large_parameters_are_updated_in_groups(void **state) {
  (void)state;
  enum { LARGE = 1025 * 640, LARGE_UPDATES = 3, LARGE_STRIDE = 9973 };
  float *rows = malloc(sizeof *rows * LARGE * LARGE_UPDATES);
  size_t n;
  assert_non_null(rows);
  fill(rows, LARGE_UPDATES, LARGE, 0);
  file_write_bytes("x.bin", rows, sizeof *rows * LARGE * LARGE_UPDATES);
  free(rows);
  file_write("net.ini", file_read(STATE_DTYPES "/large.ini", &n));
  json_t *cases = json_load_file(STATE_DTYPES "/golden.json", 0, NULL);
  const json_t *golden = json_object_get(json_object_get(cases, "large"), "w");
  const json_t *plan = program_json(0, "plan net.ini --set optimizer.check_finite=yes");
  train("adamw", "plain", "");
  train("adamw", "guarded", "--set optimizer.check_finite=yes");
  expect_tensor("plain", "plain", 0, golden, LARGE_STRIDE);
  expect_tensor("guarded", "guarded", 0, golden, LARGE_STRIDE);
  /* the product w * x and the gradient beside the loop's own memory: no value of the update is that large */
  assert_true(program_number(plan, "arena_bytes") < 4.0 * LARGE * 4);
  json_decref(cases);
}

/* Elementwise optimizers, and one that updates parameter by parameter. */
static const char *const kinds[] = {
    "adamw state_dtype=bf16", "adamw state_dtype=int8 cautious=yes lookahead=3", "lamb state_dtype=int8"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void expect_same(const char *what, const char *run, const char *other, double within) {
  for (int p = 0; p < 3; p++) {
    double distance = tensor_distance(last(run, "model"), last(other, "model"), names[p]);
    if (!(distance <= within)) fail_msg("%s: %s differs by %g", what, names[p], distance);
  }
}

static void expect_resume(const char *kind, int number, const char *more) {
  char whole[16], cut[16], options[256];
  snprintf(whole, sizeof whole, "whole%d", number);
  snprintf(cut, sizeof cut, "cut%d", number);
  snprintf(options, sizeof options, "--set run.epochs=2 %s", more);
  train(kind, whole, options);
  snprintf(options, sizeof options, "--set run.epochs=2 --set run.max_steps=7 %s", more);
  train(kind, cut, options);
  snprintf(options, sizeof options, "--set run.epochs=2 --resume auto %s", more);
  train(kind, cut, options);
  expect_same(kind, whole, cut, 0);
}

#define TWO_DEVICES                                                                                          \
  "--set data.batch=2 --set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2"
#define DIVIDED TWO_DEVICES " --set distributed.shard=optimizer"

static void resuming_is_exact(void **state) {
  (void)state;
  write_data();
  for (int i = 0; i < KINDS; i++) expect_resume(kinds[i], i, "");
  for (int i = 0; i < 2; i++) expect_resume(kinds[i], KINDS + i, DIVIDED);
}

/* A rank rounds its piece of a divided state by other random numbers than one device does. */
static void ranks_agree_with_one_device(void **state) {
  (void)state;
  write_data();
  for (int i = 0; i <= KINDS; i++) {
    const char *kind = kinds[i < KINDS ? i : 1];
    char one[16], two[16];
    snprintf(one, sizeof one, "one%d", i);
    snprintf(two, sizeof two, "two%d", i);
    train(kind, one, "--set data.batch=2");
    train(kind, two, i < KINDS ? TWO_DEVICES : DIVIDED);
    expect_same(kind, one, two, 2e-6);
  }
}

/* Of a tensor in a file of safetensors. */
static const char *dtype_of(const char *path, const char *name) {
  static char dtype[8];
  size_t n;
  uint64_t header;
  const char *bytes = file_read(path, &n);
  memcpy(&header, bytes, sizeof header);
  json_t *json = json_loadb(bytes + 8, (size_t)header, 0, NULL);
  const char *text = json_string_value(json_object_get(json_object_get(json, name), "dtype"));
  snprintf(dtype, sizeof dtype, "%s", text != NULL ? text : "");
  json_decref(json);
  return dtype;
}

static void checkpoints_have_the_dtypes(void **state) {
  (void)state;
  write_data();
  train("adamw state_dtype=bf16", "b", "");
  assert_string_equal(dtype_of(last("b", "optimizer"), "w.exp_avg"), "BF16");
  assert_string_equal(dtype_of(last("b", "model"), "w"), "F32");
  train("adamw state_dtype=int8", "i", "");
  assert_string_equal(dtype_of(last("i", "optimizer"), "w.exp_avg_sq"), "U8");
  assert_string_equal(dtype_of(last("i", "optimizer"), "w.exp_avg_sq.absmax"), "F32");
  assert_string_equal(dtype_of(last("i", "optimizer"), "s.exp_avg"), "F32");
  train("schedule_free_sgd state_dtype=bf16", "z", "");
  assert_string_equal(dtype_of(last("z", "optimizer"), "w.z"), "F32");
}

static double plan(const char *key, const char *more) {
  return program_number(program_json(0, "plan net.ini %s", more), key);
}

/* bf16: one launch for the region, as in f32. int8: one for the small parameters; of the others three that
 * read the codes and update, and for each state one for the greatest magnitudes and one for the codes. */
static void launches_and_bytes_are_few(void **state) {
  (void)state;
  write_data();
  double launches = plan("launches", ""), bytes = plan("state_bytes", "");
  assert_true(plan("launches", "--set optimizer.state_dtype=bf16") == launches);
  assert_true(plan("launches", "--set optimizer.state_dtype=int8") <= launches + 7);
  assert_true(plan("state_bytes", "--set optimizer.state_dtype=bf16") * 3 < bytes * 2 + 1000);
  assert_true(plan("state_bytes", "--set optimizer.state_dtype=int8") * 3 < bytes * 1.6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(parameters_are_those_of_the_reference, program_open, program_close),
      cmocka_unit_test_setup_teardown(large_parameters_are_updated_in_groups, program_open, program_close),
      cmocka_unit_test_setup_teardown(resuming_is_exact, program_open, program_close),
      cmocka_unit_test_setup_teardown(ranks_agree_with_one_device, program_open, program_close),
      cmocka_unit_test_setup_teardown(checkpoints_have_the_dtypes, program_open, program_close),
      cmocka_unit_test_setup_teardown(launches_and_bytes_are_few, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
