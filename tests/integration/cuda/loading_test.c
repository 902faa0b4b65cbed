/* Libraries and devices that are missing or too old: exit codes and messages of the program. */
#include "double.h"

#include <dlfcn.h>

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
  assert_int_equal(program_run("doctor"), 0);
  assert_non_null(strstr(program_out, "\nbackend    cuda: not usable\n"));
  assert_non_null(strstr(program_out, "\nmissing    cuda: the NVIDIA driver is not found: no libcuda.so.1"));
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
                                     TEST(the_doctor_describes_the_device)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
