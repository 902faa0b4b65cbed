/* [model] lengths: programs of several lengths compute what one of the longest length computes. */
#include <math.h>

#include "configs.h"
#include "npy_files.h"
#include "tensors.h"

/* The metric `size` is the mean length of the programs that the samples were computed with. */
static const char lengths_ini[] =
    "[run]\nname = lengths\nepochs = 2\nseed = 3\n[data]\nsource = random\n"
    "fields = x: f32[32, 6], length: i32[] 1..32\ntargets = y: i32[32], kind: i32[]\nclasses = 5\n"
    "samples = 24\nbatch = 2\n[model]\ninputs = x: f32[n, 6], length: i32[]\n"
    "targets = y: i32[n], kind: i32[]\nlengths = 8, 16, 32\nlayers =\n    h: lstm(12) <- x, length\n"
    "    tags: linear(5) <- h\n    real = cast(iota([1, n], axis=1, dtype=i32) < length[:, None], to=f32)\n"
    "    pooled = sum(h * real[..., None], axis=1) / cast(length, to=f32)[:, None]\n"
    "    kinds: linear(5) <- pooled\noutputs = kinds, tags\nloss =\n    cross_entropy <- kinds, kind\n"
    "    tag: cross_entropy <- tags, y\nmetrics =\n    accuracy <- kinds, kind\n"
    "    size: value <- n * cast(length > 0, to=f32)\n[optimizer]\ntype = sgd\nlr = 0.1\n";

static double distance(const json_t *a, const json_t *b, const char *path) {
  return fabs(program_number(a, path) - program_number(b, path));
}

static void expect_equal_metrics(const json_t *a, const json_t *b, const char *split) {
  static const char *const names[] = {"loss", "cross_entropy", "tag", "accuracy"};
  char path[64];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s%s", split, names[i]);
    assert_true(distance(a, b, path) < 1e-5);
  }
}

static void all_lengths_train_as_the_longest_one(void **state) {
  (void)state;
  file_write("lengths.ini", lengths_ini);
  const json_t *several = program_json(0, "train lengths.ini");
  const json_t *one = program_json(0, "train lengths.ini --set model.lengths=32 --set run.name=one");
  expect_equal_metrics(several, one, "train.");
  expect_equal_metrics(several, one, "valid.");
  assert_true(program_number(one, "train.size") == 32);
  assert_true(program_number(several, "train.size") < 31 && program_number(several, "train.size") > 8);
  assert_true(program_number(several, "valid.size") < 31);
  assert_true(tensor_distance("runs/lengths/checkpoints/last/model.safetensors",
                              "runs/one/checkpoints/last/model.safetensors", "h.weight_ih_l0") < 1e-5);
  const json_t *again = program_json(0, "eval lengths.ini --weights runs/lengths/checkpoints/last");
  assert_true(fabs(program_number(again, "loss") - program_number(several, "valid.loss")) < 1e-6);
  assert_true(program_number(again, "size") == program_number(several, "valid.size"));
}

static void a_plan_has_the_longest_length(void **state) {
  (void)state;
  file_write("lengths.ini", lengths_ini);
  assert_int_equal(program_run("plan lengths.ini"), 0);
  const char *tags = strstr(program_out, "\ntags ");
  assert_non_null(tags);
  assert_non_null(strstr(tags, "f32[1, 32, 5]"));
}

static void a_resumed_run_reads_the_same_batches(void **state) {
  (void)state;
  file_write("lengths.ini", lengths_ini);
  const json_t *whole = program_json(0, "train lengths.ini");
  program_json(0, "train lengths.ini --set run.name=half --set run.max_steps=16");
  const json_t *rest = program_json(0, "train lengths.ini --resume auto --set run.name=half");
  assert_true(program_number(whole, "train.loss") == program_number(rest, "train.loss"));
  assert_true(program_number(whole, "train.size") == program_number(rest, "train.size"));
}

static void arrays_of_any_length_are_predicted(void **state) {
  (void)state;
  float x[3 * 7 * 6], padded[3 * 32 * 6] = {0}, long_rows[33 * 6] = {0};
  const int32_t seven[3] = {7, 7, 7}, wrong[3] = {7, 8, 7};
  size_t n = 0;
  for (int i = 0; i < 3 * 7 * 6; i++) {
    x[i] = (float)(i * 37 % 101) / 50 - 1;
    padded[i / 42 * 32 * 6 + i % 42] = x[i];
  }
  file_write("lengths.ini", lengths_ini);
  program_json(0, "train lengths.ini");
  write_npy("x.npy", 3, "7, 6", x, 3 * 7 * 6);
  write_npy("padded.npy", 3, "32, 6", padded, 3 * 32 * 6);
  write_npy("long.npy", 1, "33, 6", long_rows, 33 * 6);
  write_array("seven.npy", "<i4", 3, "", seven, sizeof seven);
  write_array("wrong.npy", "<i4", 3, "", wrong, sizeof wrong);
  const json_t *r = program_json(0, "predict lengths.ini --input x.npy --output short.safetensors");
  assert_string_equal(program_text(json_array_get(program_member(r, "outputs"), 1), "row"), "f32[8, 5]");
  program_json(0,
               "predict lengths.ini --input x=padded.npy --input length=seven.npy --output long.safetensors");
  assert_true(tensor_distance("short.safetensors", "long.safetensors", "kinds") < 1e-6);
  const float *brief = tensor_find("short.safetensors", "tags", &n),
              *full = tensor_find("long.safetensors", "tags", &n);
  for (int i = 0; i < 3 * 7 * 5; i++)
    assert_true(fabsf(brief[i / 35 * 8 * 5 + i % 35] - full[i / 35 * 32 * 5 + i % 35]) < 1e-6f);
  assert_int_equal(program_run("predict lengths.ini --input long.npy"), 65);
  assert_non_null(strstr(program_err,
                         "long.npy: its rows have length 33, expected at most 32, the longest of "
                         "[model] lengths"));
  assert_int_equal(program_run("predict lengths.ini --input x=x.npy --input length=wrong.npy"), 65);
  assert_non_null(strstr(program_err, "sample 1 has 7 elements in field 'x', expected its length, 8"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(all_lengths_train_as_the_longest_one, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_plan_has_the_longest_length, program_open, program_close),
      cmocka_unit_test_setup_teardown(a_resumed_run_reads_the_same_batches, program_open, program_close),
      cmocka_unit_test_setup_teardown(arrays_of_any_length_are_predicted, program_open, program_close),
  };
  return cmocka_run_group_tests_name("lengths", tests, NULL, NULL);
}
