/* Autotune on the double of CUDA: a fusion against its parts, by stored times of replays. */
#include "double.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>

/* The gradients of weights and bias are one product with an epilogue, or a product and a sum. They read 12
 * MB, so that the device is estimated to take longer than for a launch. */
static const char ini[] =
    "[run]\nname = run\nmax_steps = 1\nseed = 3\n"
    "[data]\nsource = random\nshape = 1024\nclasses = 4\nsamples = 3072\nbatch = 3072\nworkers = 0\n"
    "[data.valid]\nepoch = 3072\n"
    "[model]\ninputs = image: f32[1024]\nlayers =\n    fc: linear(4)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n"
    "[backend]\nuse = cuda\ntune_folder = tune\n[backend.cuda]\nlibraries = " DOUBLES "\n";
#define FUSED "cuda_matmul_bias_grad"

/* The one file in the folder. */
static const char *tune_file(void) {
  static char path[300];
  DIR *folder = opendir("tune");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (strncmp(entry->d_name, "kernels-", 8) == 0) snprintf(path, sizeof path, "tune/%s", entry->d_name);
  closedir(folder);
  return path;
}

/* A run on a busy machine does not store all that it measures; the next one measures the rest. */
static int train_until_all_is_stored(void) {
  int lines = 0;
  for (int i = 0; i < 20; i++) {
    assert_int_equal(program_run("train model.ini --output run%d", i), 0);
    int before = lines;
    lines = file_lines(tune_file());
    if (lines == before) return lines;
  }
  fail_msg("the machine is too busy: %s", file_read(tune_file(), NULL));
  return lines;
}

/* The stored times of a kernel become another one; returns their number. */
static int set_times(const char *kernel, const char *seconds) {
  int changed = 0;
  char name[80], *line, *rest = file_read(tune_file(), NULL);
  FILE *file = fopen(tune_file(), "w");
  assert_non_null(file);
  snprintf(name, sizeof name, " %s ", kernel);
  while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
    char *behind = strstr(line, name);
    if (behind != NULL) fprintf(file, "%.16s %s%s\n", line, seconds, behind);
    if (behind == NULL) fprintf(file, "%s\n", line);
    changed += behind != NULL;
  }
  assert_int_equal(fclose(file), 0);
  return changed;
}

static int launches_of(const json_t *plan, const char *kernel) {
  const json_t *op;
  size_t i;
  int n = 0;
  json_array_foreach(program_member(plan, "ops"), i, op) n += strcmp(program_text(op, "kernel"), kernel) == 0;
  return n;
}

static void expect_fused(bool fused, const char *options) {
  const json_t *plan = program_json(0, "plan model.ini %s", options);
  assert_int_equal(launches_of(plan, FUSED), fused);
  assert_int_equal(launches_of(plan, "cuda_matmul"), fused ? 1 : 2);
}

/* The sum has no rival, and is measured since the fusion does its work. A plan and a run that does not
 * capture choose by the times that are stored. */
static void a_fusion_that_is_slower_than_its_parts_loses(void **state) {
  (void)state;
  file_write("model.ini", ini);
  expect_fused(true, "");
  int lines = train_until_all_is_stored();
  assert_true(set_times("cuda_reduce_sum", "1e-3") == 1);
  assert_true(set_times(FUSED, "1") >= 2);
  expect_fused(false, "");
  expect_fused(false, "--set backend.capture=no");
  expect_fused(true, "--set backend.autotune=no");
  assert_int_equal(program_run("train model.ini --output slow"), 0);
  assert_int_equal(launches_of(file_json("slow/run/plan.json"), FUSED), 0);
  assert_int_equal(program_run("train model.ini --output uncaptured --set backend.capture=no"), 0);
  assert_int_equal(launches_of(file_json("uncaptured/run/plan.json"), FUSED), 0);
  set_times(FUSED, "1e-3");
  expect_fused(true, "");
  assert_int_equal(file_lines(tune_file()), lines); /* nothing was measured twice */
  double_is_content();
}

/* Its own measurements are of single launches, which do not add up. */
static void a_run_that_does_not_capture_measures_no_fusion(void **state) {
  (void)state;
  file_write("model.ini", ini);
  assert_int_equal(program_run("train model.ini --output run --set backend.capture=no"), 0);
  assert_null(strstr(file_read(tune_file(), NULL), " cuda_reduce_sum "));
  assert_true(file_lines(tune_file()) > 2); /* of rivals */
  double_is_content();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, double_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_fusion_that_is_slower_than_its_parts_loses),
      TEST(a_run_that_does_not_capture_measures_no_fusion),
  };
  return cmocka_run_group_tests_name("cuda tune", tests, NULL, NULL);
}
