/* Libraries, devices and the cache of compiled kernels that are missing, too old or damaged: exit codes and
 * messages of the program. */
#include "double.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include "configs.h"

#define TRAIN "train noise.ini --set run.epochs=1 --set run.max_steps=2 --set run.output= "

static int loading_open(void **state) {
  static const char *const variables[] = {"FAKECUDA_DEVICES", "FAKECUDA_VERSION", "FAKECUDA_ARCH"};
  for (int i = 0; i < 3; i++) unsetenv(variables[i]);
  int code = double_open(state);
  file_write("noise.ini", noise_ini);
  return code;
}

static void refused_with(const char *text) {
  assert_int_equal(program_run(TRAIN ON_DOUBLE), 69);
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s': %s", text, program_err);
}

static void a_missing_driver_is_named(void **state) {
  (void)state;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver != NULL) {
    dlclose(driver);
    print_message("skipped: this machine has a driver\n");
    skip();
  }
  assert_int_equal(program_run(TRAIN "--set backend.use=cuda --set backend.cuda.libraries=/nowhere"), 69);
  assert_non_null(
      strstr(program_err, "the NVIDIA driver is not found: no libcuda.so.1 in /nowhere, the places"));
  assert_non_null(strstr(program_err, "install the driver of the GPU"));
}

static void an_old_driver_is_named(void **state) {
  (void)state;
  setenv("FAKECUDA_VERSION", "11040", 1);
  refused_with("is for CUDA 11.4, expected 12.0 or later; install a newer driver");
}

/* A driver of CUDA 12 does not run code of NVRTC 13. */
static void libraries_of_a_newer_major_are_not_taken(void **state) {
  (void)state;
  void *older = dlopen("libnvrtc.so.12", RTLD_NOW);
  if (older != NULL || access(DOUBLES "/libnvrtc.so.12", F_OK) == 0) {
    if (older != NULL) dlclose(older);
    print_message("skipped: this machine has NVRTC 12\n");
    skip();
  }
  setenv("FAKECUDA_VERSION", "12080", 1);
  refused_with("NVRTC, which compiles kernels, is not found: no libnvrtc.so.12 in ");
  assert_non_null(strstr(program_err, "install CUDA 12, or the PyPI package nvidia-cuda-nvrtc"));
}

static void a_machine_without_devices_is_named(void **state) {
  (void)state;
  setenv("FAKECUDA_DEVICES", "0", 1);
  refused_with("finds no NVIDIA GPU");
  assert_int_equal(program_run(TRAIN "--set backend.use=cuda,cpu --set backend.cuda.libraries=" DOUBLES), 0);
  assert_non_null(strstr(program_err, "finds no NVIDIA GPU"));
}

static void an_old_device_is_named(void **state) {
  (void)state;
  setenv("FAKECUDA_ARCH", "70", 1);
  refused_with("has compute capability 7.0, expected 7.5 or later");
}

/* ---- compiled kernels on disk ---- */

/* Calls `change` for each file of compiled code; returns their number. */
static int each_image(void (*change)(const char *path)) {
  int n = 0;
  DIR *folder = opendir("cache/tenon/cuda");
  for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
    char path[512];
    if (strstr(e->d_name, ".cubin") == NULL) continue;
    snprintf(path, sizeof path, "cache/tenon/cuda/%s", e->d_name);
    if (change != NULL) change(path);
    n++;
  }
  if (folder != NULL) closedir(folder);
  return n;
}

static void damage(const char *path) { file_write(path, "no code"); }

static void use_cache(void) {
  char folder[1024], path[1100];
  assert_non_null(getcwd(folder, sizeof folder));
  snprintf(path, sizeof path, "%s/cache", folder);
  setenv("XDG_CACHE_HOME", path, 1);
}

static void damaged_code_is_compiled_again(void **state) {
  (void)state;
  use_cache();
  assert_int_equal(program_run(TRAIN ON_DOUBLE), 0);
  int n = each_image(damage);
  assert_true(n > 2);
  assert_int_equal(program_run(TRAIN ON_DOUBLE), 0);
  assert_non_null(strstr(program_err, ".cubin is damaged; "));
  assert_non_null(strstr(program_err, " was compiled again"));
  assert_int_equal(program_run(TRAIN ON_DOUBLE), 0);
  assert_null(strstr(program_err, "damaged"));
  assert_int_equal(each_image(NULL), n);
}

static void a_cache_that_cannot_be_made_is_no_error(void **state) {
  (void)state;
  use_cache();
  assert_int_equal(mkdir("cache", 0700), 0);
  file_write("cache/tenon", "a file where the folder should be");
  assert_int_equal(program_run(TRAIN ON_DOUBLE), 0);
  assert_non_null(strstr(program_err, "compiled kernels are not kept: "));
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
  use_cache();
  assert_int_equal(program_run(TRAIN ON_DOUBLE), 0);
  assert_true(each_image(put_folder) > 2);
  assert_int_equal(program_run(TRAIN ON_DOUBLE), 0);
  assert_non_null(strstr(program_err, " was not kept: "));
}

/* ---- the doctor ---- */

/* The description of a device that the doctor writes gives the plan of the device itself. */
static void the_doctor_describes_the_device(void **state) {
  const char *before = getenv("LD_LIBRARY_PATH");
  char folders[2048];
  (void)state;
  snprintf(folders, sizeof folders, DOUBLES "%s%s", before ? ":" : "", before ? before : "");
  setenv("LD_LIBRARY_PATH", folders, 1);
  assert_int_equal(program_run("doctor"), 0);
  assert_non_null(strstr(program_out, "double of an H200"));
  program_stdout("device.json");
  assert_int_equal(program_run("doctor cuda --device-json"), 0);
  program_stdout(NULL);
  assert_true(program_number(file_json("device.json"), "arch") == 90);
  const json_t *own = program_json(0, "plan noise.ini --set backend.use=cuda");
  const json_t *described = program_json(0, "plan noise.ini --device device.json");
  assert_string_equal(program_text(own, "hash"), program_text(described, "hash"));
  assert_int_equal(json_array_size(program_member(described, "fallbacks")), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, loading_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_missing_driver_is_named),
                                     TEST(an_old_driver_is_named),
                                     TEST(libraries_of_a_newer_major_are_not_taken),
                                     TEST(a_machine_without_devices_is_named),
                                     TEST(an_old_device_is_named),
                                     TEST(damaged_code_is_compiled_again),
                                     TEST(a_cache_that_cannot_be_made_is_no_error),
                                     TEST(code_that_cannot_be_kept_is_no_error),
                                     TEST(the_doctor_describes_the_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
