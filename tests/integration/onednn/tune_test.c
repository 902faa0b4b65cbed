/* Variants of a convolution are measured once, stored on disk, and shown by the plan. */
#include "program.h"

#include <dirent.h>
#include <stdbool.h>
#include <unistd.h>

/* Too large for the kernels of small convolutions, which are not measured. */
static const char model[] =
    "[run]\nname = net\nmax_steps = 1\nseed = 2\n"
    "[backend]\nuse = onednn\ntune_folder = tune\n[precision]\npolicy = bf16\n"
    "[data]\nsource = random\nshape = 64, 32, 32\nclasses = 4\nsamples = 8\nbatch = 4\n"
    "[model]\ninputs = image: f32[64, 32, 32]\nlayers =\n"
    "    a:    conv2d(80, kernel=3, padding=1)\n"
    "          relu\n"
    "    b:    conv2d(80, kernel=3, padding=1)\n"
    "    pool: global_avg_pool\n"
    "    fc:   linear(4)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n";

/* With AVX-512 oneDNN convolves bf16 directly and in f32. Elsewhere there may be one variant, which is not
 * measured. */
static bool has_several_ways(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#else
  return false;
#endif
}

/* The number of convolutions in the plan, and of measured ones. */
static void count(const char *more, int *measured, int *all) {
  const json_t *ops = program_member(program_json(0, "plan model.ini %s", more), "ops"), *op;
  size_t i;
  *measured = *all = 0;
  json_array_foreach(ops, i, op) {
    if (strncmp(program_text(op, "op"), "conv2d", 6) != 0) continue;
    ++*all;
    *measured += json_is_true(program_member(op, "measured"));
  }
}

/* The one file in the folder. */
static const char *tune_file(void) {
  static char path[300];
  DIR *folder = opendir("tune");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') snprintf(path, sizeof path, "tune/%s", entry->d_name);
  closedir(folder);
  return path;
}

/* Each measurement names the version of the library, so measurements of another version are not used. */
static void check_versions(const char *path) {
  char *rest = file_read(path, NULL);
  for (char *line; (line = strsep(&rest, "\n")) != NULL;)
    if (strstr(line, "onednn_conv2d") != NULL) assert_non_null(strstr(line, " oneDNN "));
}

/* A run on a busy machine does not store all that it measures; the next one measures the rest. */
static void train_until_all_is_stored(int convolutions) {
  int measured = 0, all = 0;
  for (int i = 0; i < 20 && measured < convolutions; i++) {
    assert_int_equal(program_run("train model.ini --output one%d", i), 0);
    count("", &measured, &all);
  }
}

static void a_run_measures_and_the_plan_knows(void **state) {
  int measured, all;
  (void)state;
  if (!has_several_ways()) skip();
  file_write("model.ini", model);
  count("", &measured, &all);
  assert_int_equal(measured, 0);
  assert_int_equal(all, 5); /* the gradient of the image is not computed */
  train_until_all_is_stored(all);
  int lines = file_lines(tune_file());
  assert_true(lines >= 1 + 2 * 5); /* at least two variants each */
  check_versions(tune_file());
  count("", &measured, &all);
  assert_int_equal(measured, all);
  count("--set backend.autotune=no", &measured, &all);
  assert_int_equal(measured, 0);
  /* known variants are not measured again */
  assert_int_equal(program_run("train model.ini --output two"), 0);
  assert_int_equal(file_lines(tune_file()), lines);
}

static void a_plan_measures_nothing(void **state) {
  (void)state;
  file_write("model.ini", model);
  assert_int_equal(program_run("plan model.ini"), 0);
  assert_int_equal(access("tune", F_OK), -1);
  assert_int_equal(program_run("train model.ini --output one --set backend.autotune=cached"), 0);
  assert_int_equal(access("tune", F_OK), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_run_measures_and_the_plan_knows),
      TEST(a_plan_measures_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
