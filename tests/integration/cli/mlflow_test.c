/* The observer mlflow: the files that its store has of a run. tests/golden/check_mlflow.py reads them with
 * MLflow. */
#include <dirent.h>

#include "configs.h"
#include "program.h"

/* The only folder below `parent` whose name begins with a digit or a letter, or "". */
static const char *only_folder(const char *parent) {
  static char path[1024];
  struct dirent *entry;
  char found[512] = "";
  DIR *folder = opendir(parent);
  assert_non_null(folder);
  while ((entry = readdir(folder)) != NULL)
    if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
      snprintf(found, sizeof found, "%s", entry->d_name);
  closedir(folder);
  snprintf(path, sizeof path, "%s/%s", parent, found);
  return path;
}

static const char *run_file(const char *name) {
  static char path[2048];
  char experiment[1024];
  snprintf(experiment, sizeof experiment, "%s", only_folder("mlruns"));
  snprintf(path, sizeof path, "%s/%s", only_folder(experiment), name);
  return path;
}

static void a_run_is_in_the_store(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(
      program_run("train noise.ini --quiet --set run.observers=mlflow --set observer.mlflow.every=1"), 0);
  assert_non_null(strstr(file_read(run_file("meta.yaml"), NULL), "status: 3\n"));
  assert_non_null(strstr(file_read(run_file("meta.yaml"), NULL), "run_name: \"noise\"\n"));
  assert_string_equal(file_read(run_file("params/optimizer.lr"), NULL), "0.05");
  assert_string_equal(file_read(run_file("tags/tenon.precision"), NULL), "fp32");
  assert_int_equal(file_lines(run_file("metrics/train/loss")), 20);
  assert_int_equal(file_lines(run_file("metrics/valid/accuracy")), 2);
}

/* Each step is there once, after a run that went on from a checkpoint before its end. */
static void a_resumed_run_goes_on_in_its_place(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
#define RUN "train noise.ini --quiet --set run.observers=mlflow --set observer.mlflow.every=1 "
  assert_int_equal(program_run(RUN "--set run.epochs=1"), 0);
  assert_int_equal(program_run(RUN "--set run.epochs=3 --resume auto"), 0);
  assert_int_equal(file_lines(run_file("metrics/train/loss")), 30);
  assert_int_equal(file_lines(run_file("metrics/valid/loss")), 3);
  assert_non_null(strstr(file_read(run_file("meta.yaml"), NULL), "status: 3\n"));
}

static void a_store_that_cannot_be_made_is_told(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  file_write("mlruns", "");
  program_expect(program_run("train noise.ini --quiet --set run.observers=mlflow"), 74);
  assert_non_null(strstr(program_err, "observer 'mlflow'"));
  assert_non_null(strstr(program_err, "see [observer.mlflow] folder"));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {IN_FOLDER(a_run_is_in_the_store),
                                     IN_FOLDER(a_resumed_run_goes_on_in_its_place),
                                     IN_FOLDER(a_store_that_cannot_be_made_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
