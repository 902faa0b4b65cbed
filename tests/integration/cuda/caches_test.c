/* The caches of compiled code and of measurements of kernels: damaged, in a folder that cannot be written, on
 * a disk that is full or fails. The training has the same result, and a message names the file and the
 * reason. */
#include "double.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

/* One product is measured; the others are of the same shapes. */
static const char model_ini[] =
    "[run]\nname = run\nepochs = 1\nseed = 5\nsteps_per_launch = 1\n"
    "[data]\nsource = digits\nepoch = 8\nbatch = 8\nworkers = 0\ntransforms = to_float\n[data.valid]\nbatch "
    "= 8\nepoch = 8\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n    flatten\n    fc: linear(10)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.01\n";
#define TRAIN  "train model.ini --set run.output= " ON_DOUBLE
#define FOLDER "cache/tenon"
enum { STRIDE = 3 };

static double whole_loss;

static int caches_open(void **state) {
  char folder[1024], path[1100];
  int code = double_open(state);
  if (code != 0 || getcwd(folder, sizeof folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/cache", folder);
  setenv("XDG_CACHE_HOME", path, 1);
  file_write("model.ini", model_ini);
  return 0;
}

/* A training that succeeds; returns what it printed to stderr. */
static const char *train(void) {
  double loss = program_number(program_json(0, TRAIN), "train.loss");
  if (whole_loss == 0) whole_loss = loss;
  if (!(loss - whole_loss < 1e-6 && whole_loss - loss < 1e-6))
    fail_msg("the loss is %.9g, expected %.9g", loss, whole_loss);
  return program_err;
}

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s': %s", text, program_err);
}

static void says_nothing_of_caches(const char *when) {
  static const char *const words[] = {"damaged", "not kept", "not stored", "not measurements", "not used"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strstr(program_err, words[i]) != NULL) fail_msg("%s: %s", when, program_err);
}

/* Calls `change` for each file of a folder whose name contains `word`; returns their number. */
static int each_file(const char *path, const char *word, void (*change)(const char *path)) {
  int n = 0;
  DIR *folder = opendir(path);
  for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
    char file[512];
    if (strstr(e->d_name, word) == NULL) continue;
    snprintf(file, sizeof file, "%s/%s", path, e->d_name);
    if (change != NULL) change(file);
    n++;
  }
  if (folder != NULL) closedir(folder);
  return n;
}

static int each_code(void (*change)(const char *path)) { return each_file(FOLDER "/cuda", ".cubin", change); }

static int each_measurement(void (*change)(const char *path)) {
  return each_file(FOLDER, "kernels-", change);
}

/* ---- damaged files ---- */

static void damage(const char *path) { file_write(path, "no code"); }

static void damaged_code_is_compiled_again(void **state) {
  (void)state;
  train();
  int n = each_code(damage);
  assert_true(n > 2);
  train();
  says(".cubin is damaged; ");
  says(" was compiled again");
  train();
  says_nothing_of_caches("after the repair");
  assert_int_equal(each_code(NULL), n);
}

static void damage_lines(const char *path) {
  FILE *file = fopen(path, "a");
  assert_non_null(file);
  fputs("no measurement\n0123456789abcdef -1 a variant\n0123456789abcdef nan a variant\n", file);
  fclose(file);
}

static void replace_heading(const char *path) { file_write(path, "tenon measurements 1: another device\n"); }

/* A measurement may be unsteady on a busy machine, and is then not stored. */
static bool measurements_are_stored(void) {
  for (int i = 0; i < 20 && each_measurement(NULL) == 0; i++) train();
  return each_measurement(NULL) == 1;
}

static void damaged_measurements_are_not_used(void **state) {
  (void)state;
  assert_true(measurements_are_stored());
  each_measurement(damage_lines);
  train();
  says(": 3 lines are not measurements and were ignored");
  each_measurement(replace_heading);
  train();
  says(": does not begin with \"tenon measurements 4: ");
  says("remove the file to start a new one");
  each_measurement((void (*)(const char *))(void (*)(void))unlink);
  train();
  says_nothing_of_caches("without the file");
}

/* ---- folders and names that are taken ---- */

static void a_cache_that_cannot_be_made_is_no_error(void **state) {
  (void)state;
  assert_int_equal(mkdir("cache", 0700), 0);
  file_write(FOLDER, "a file where the folder should be");
  train();
  says("compiled kernels are not kept: ");
  says("cache/tenon/cuda: File exists");
}

static void put_folder(const char *path) {
  char inside[600];
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(inside, sizeof inside, "%s/file", path);
  file_write(inside, "");
}

/* The run goes on with code that cannot be written to its place. */
static void code_that_cannot_be_kept_is_no_error(void **state) {
  (void)state;
  train();
  assert_true(each_code(put_folder) > 2);
  train();
  says(" was not kept: ");
}

static void a_folder_of_others_is_not_used(void **state) {
  (void)state;
  assert_int_equal(mkdir("cache", 0700), 0);
  assert_int_equal(mkdir(FOLDER, 0700), 0);
  assert_int_equal(mkdir(FOLDER "/cuda", 0700), 0);
  assert_int_equal(chmod(FOLDER "/cuda", 0777), 0);
  train();
  says("compiled kernels are not kept: ");
  says("cache/tenon/cuda: it is not a folder of this user alone");
}

/* ---- a disk that fails: the shim of tests/integration/faults ---- */

static const char *fault_at, *fault_kind;

/* In the new process. */
static void fail_disk(void) {
  char options[256];
  const char *given = getenv("ASAN_OPTIONS");
  snprintf(options, sizeof options, "%s%sverify_asan_link_order=0", given ? given : "", given ? ":" : "");
  setenv("ASAN_OPTIONS", options, 1);
  setenv("LD_PRELOAD", SHIM, 1);
  setenv("TENON_FAULT_ROOT", "/" FOLDER, 1);
  setenv("TENON_FAULT_LOG", "calls", 1);
  setenv("TENON_FAULT_AT", fault_at, 1);
  setenv("TENON_FAULT_KIND", fault_kind, 1);
}

static void train_on_failing_disk(const char *at, const char *kind) {
  fault_at = at;
  fault_kind = kind;
  remove("calls");
  program_prepare(fail_disk);
  train();
  program_prepare(NULL);
}

static void a_full_disk_is_no_error(void **state) {
  (void)state;
  train_on_failing_disk("1+", "ENOSPC");
  says("compiled kernels are not kept: ");
  says("cache/tenon/cuda: No space left on device");
  train();
  train_on_failing_disk("1+", "EACCES");
  assert_int_equal(system("rm -rf cache"), 0);
  train_on_failing_disk("1+", "EACCES");
  says("cache/tenon/cuda: Permission denied");
}

/* The measurement of a steady kernel cannot be stored. */
static void measurements_find_no_space(void **state) {
  (void)state;
  bool said = false;
  for (int i = 0; i < 20 && !said; i++) {
    assert_int_equal(system("rm -rf cache/tenon/kernels-*"), 0);
    train_on_failing_disk("1+", "ENOSPC");
    said = strstr(program_err, "measurements of kernels are not stored: ") != NULL;
  }
  says("measurements of kernels are not stored: ");
  says("No space left on device");
}

/* The call of the shim's log that fails. */
static void find_call(int number, char name[32]) {
  char *line;
  *name = '\0';
  for (char *rest = file_read("calls", NULL); (line = strsep(&rest, "\n")) != NULL;)
    if (atoi(line) == number) sscanf(line, "%*d %31s", name);
}

/* Whether the failure of a call is to be reported: reading and removing go on without a word, and the rest of
 * a short write is written. */
static bool is_reported(const char *call, const char *kind) {
  bool writes = strcmp(call, "mkostemp") == 0 || strcmp(call, "rename") == 0 || strcmp(call, "write") == 0;
  return writes && strcmp(kind, "short") != 0;
}

static void fail_call(int number, const char *kind) {
  char at[16], call[32], when[96];
  snprintf(at, sizeof at, "%d", number);
  assert_int_equal(system("rm -rf cache"), 0);
  train_on_failing_disk(at, kind);
  find_call(number, call);
  snprintf(when, sizeof when, "call %d, %s, %s", number, call, kind);
  const char *reason = strcmp(kind, "EIO") == 0 ? "Input/output error" : "No space left on device";
  if (is_reported(call, kind) && strstr(program_err, reason) == NULL) fail_msg("%s: %s", when, program_err);
  train();
  says_nothing_of_caches(when);
}

/* After each failure of the disk, the next run finds whole files. */
static void every_call_of_the_disk_may_fail(void **state) {
  static const char *const kinds[] = {"ENOSPC", "EIO", "short", "full"};
  (void)state;
  train_on_failing_disk("0", "EIO");
  int calls = file_lines("calls");
  assert_true(calls > 30);
  for (int kind = 0; kind < 4; kind++)
    for (int number = 1 + kind; number <= calls; number += STRIDE) fail_call(number, kinds[kind]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, caches_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(damaged_code_is_compiled_again),
                                     TEST(damaged_measurements_are_not_used),
                                     TEST(a_cache_that_cannot_be_made_is_no_error),
                                     TEST(code_that_cannot_be_kept_is_no_error),
                                     TEST(a_folder_of_others_is_not_used),
                                     TEST(a_full_disk_is_no_error),
                                     TEST(measurements_find_no_space),
                                     TEST(every_call_of_the_disk_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
