/* The program on the double of CUDA: several steps in one launch, transforms of the data on the device, plans
 * that do not fit, and the memory and libraries that the doctor shows. */
#include "double.h"

#include "configs.h"
#include "transform_runs.h"

#include <sys/stat.h>

/* A number of a file of lines "NAME NUMBER". */
static double number_of(const char *path, const char *name) {
  char *line, *rest = file_read(path, NULL), found[64];
  double number = 0;
  while ((line = strsep(&rest, "\n")) != NULL)
    if (sscanf(line, "%63s %lf", found, &number) == 2 && strcmp(found, name) == 0) return number;
  return 0;
}

/* ---- steps ---- */

/* The launches of graphs in two epochs of ten steps and ten validation batches; K steps a launch. */
static double count_launches(int k, double *loss) {
  setenv("FAKECUDA_COUNTS", "counts", 1);
  const json_t *result = program_json(0,
                                      "train model.ini --output out_%d --set run.name=run --set run.seed=3 "
                                      "--set run.steps_per_launch=%d --set backend.autotune=no " ON_DOUBLE,
                                      k, k);
  unsetenv("FAKECUDA_COUNTS");
  double_is_content();
  *loss = program_number(result, "train.loss");
  return number_of("counts", "cuGraphLaunch");
}

/* The first validation batch and the first step are launched, the rest of the first group is replayed step by
 * step, and then each group by one launch. */
static void several_steps_of_one_launch_are_one_graph(void **state) {
  double loss, alone;
  (void)state;
  file_write("model.ini", noise_ini);
  assert_true(count_launches(1, &alone) == 19 + 19);
  assert_true(count_launches(2, &loss) == 19 + 1 + 18 / 2);
  assert_true(loss == alone);
  assert_true(count_launches(5, &loss) == 19 + 4 + 15 / 5);
  assert_true(loss == alone);
  checkpoints_equal("out_2", "out_1");
  checkpoints_equal("out_5", "out_1");
}

/* ---- transforms ---- */

#define CUDA "cuda --set backend.autotune=no --set backend.cuda.libraries=" DOUBLES

static void transforms_on_the_device_have_the_bits_of_the_host(void **state) {
  (void)state;
  write_model(chain, 36, 36);
  train_both_ways(CUDA, 5, "");
  write_model("random_crop([20, 25]), center_crop([20, 25]), to_float", 20, 25);
  train_both_ways(CUDA, 3, "--set backend.capture=no");
  write_model("to_float, random_flip(p=0.3, direction=vertical)", 28, 28);
  train_both_ways(CUDA, 1, "--set optimizer.accumulate=2");
  double_is_content();
}

/* Bytes that a training copies to the device. */
static double copied_bytes(const char *output, const char *device_transforms) {
  setenv("FAKECUDA_BYTES", "bytes", 1);
  assert_non_null(program_json(0,
                               "train model.ini --output %s --set data.device_transforms=%s "
                               "--set run.steps_per_launch=1 --set backend.autotune=no " ON_DOUBLE,
                               output, device_transforms));
  unsetenv("FAKECUDA_BYTES");
  double_is_content();
  return number_of("bytes", "to_device");
}

/* An epoch is 12 batches of 8 images, and 3 of 20 for validation; a batch has u8 in place of f32. */
static void a_batch_is_copied_before_its_pixels_are_floats(void **state) {
  (void)state;
  write_model("normalize(mean=0.13, std=0.31)", 28, 28);
  double host = copied_bytes("host", "no"), device = copied_bytes("device", "auto");
  print_message("bytes copied to the device: %.0f, with transforms there %.0f\n", host, device);
  assert_true(host - device == 2 * (12 * 8 + 3 * 20) * 28 * 28 * 3);
  assert_true(host > 3 * device);
}

/* ---- memory ---- */

static const char large_ini[] =
    "[run]\nname = run\nmax_steps = 1\n"
    "[data]\nsource = random\nshape = 3, 24, 24\nclasses = 5\nsamples = 512\nbatch = 256\n"
    "[model]\ninputs = image: f32[3, 24, 24]\nlayers =\n"
    "    conv1: conv2d(16, kernel=3, padding=1)\n"
    "           relu\n"
    "           flatten\n"
    "    fc:    linear(5)\n"
    "loss = cross_entropy\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\n";

/* The workspaces of cuDNN's engines do not grow evenly with the batch, so a larger one might fit again.
 * Measurements launch kernels before the plan is known. */
static int train_large(const char *more) {
  setenv("FAKECUDA_COUNTS", "counts", 1);
  int code = program_run(
      "train model.ini --output out %s --set backend.cuda.cudnn=no --set backend.autotune=no " ON_DOUBLE,
      more);
  unsetenv("FAKECUDA_COUNTS");
  double_is_content();
  return code;
}

static int train_batch(int batch) {
  char more[64];
  snprintf(more, sizeof more, "--set data.batch=%d", batch);
  return train_large(more);
}

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("no '%s' in: %s", text, program_err);
}

/* Of 64 MiB another process has 48. */
static void a_plan_that_does_not_fit_is_refused_with_what_holds_the_memory(void **state) {
  int batch = 0;
  (void)state;
  file_write("model.ini", large_ini);
  setenv("FAKECUDA_MEMORY", "67108864", 1);
  setenv("FAKECUDA_OTHERS", "50331648", 1);
  assert_int_equal(train_large(""), 69);
  assert_true(number_of("counts", "cuLaunchKernel") == 0);
  says("model.ini:9: [data] batch: the plan for a batch of 256 needs ");
  says(" MiB (parameters 0.2 MiB, ");
  says(" MiB, activations ");
  says("; the largest at the peak: ");
  says(", 9.00 MiB matmul of fc: f32[256, 9216], ");
  says("has 16.0 MiB that are not in use; the largest batch that fits is ");
  assert_int_equal(sscanf(strstr(program_err, "that fits is "), "that fits is %d", &batch), 1);
  assert_int_equal(train_batch(batch), 0);
  assert_int_equal(train_batch(batch + 1), 69);
  setenv("FAKECUDA_OTHERS", "66900000", 1);
  assert_int_equal(train_large(""), 69);
  says(" that are not in use; no batch fits");
}

/* ---- the doctor ---- */

static void use_doubles(void) {
  const char *before = getenv("LD_LIBRARY_PATH");
  char folders[2048];
  snprintf(folders, sizeof folders, DOUBLES "%s%s", before ? ":" : "", before ? before : "");
  setenv("LD_LIBRARY_PATH", folders, 1);
}

static const json_t *backend_cuda(const json_t *doctor) {
  const json_t *one;
  size_t i;
  json_array_foreach(program_member(doctor, "backends"), i, one) {
    if (strcmp(program_text(one, "name"), "cuda") == 0) return one;
  }
  fail_msg("there is no backend cuda");
  return NULL;
}

static void the_doctor_lists_the_libraries_of_cuda(void **state) {
  static const char *const names[] = {"CUDA driver", "NVRTC", "cuBLASLt", "cuDNN"};
  static const char *const files[] = {"libcuda.so", "libnvrtc.so", "libcublasLt.so", "libcudnn.so"};
  char line[1024];
  (void)state;
  use_doubles();
  const json_t *libraries = program_member(backend_cuda(program_json(0, "doctor")), "libraries");
  assert_int_equal(program_run("doctor"), 0);
  assert_in_range(json_array_size(libraries), 3, 4); /* cuDNN only in builds with its headers */
  for (size_t i = 0; i < json_array_size(libraries); i++) {
    const json_t *one = json_array_get(libraries, i);
    assert_string_equal(program_text(one, "name"), names[i]);
    assert_true(atof(program_text(one, "version")) >= 9);
    snprintf(line, sizeof line, DOUBLES "/%s", files[i]);
    assert_ptr_equal(strstr(program_text(one, "path"), line), program_text(one, "path"));
    snprintf(line, sizeof line, "\n  library  %s %s, %s\n", names[i], program_text(one, "version"),
             program_text(one, "path"));
    assert_non_null(strstr(program_out, line));
  }
}

static void the_doctor_shows_the_memory_of_each_device(void **state) {
  (void)state;
  use_doubles();
  setenv("FAKECUDA_DEVICES", "2", 1);
  setenv("FAKECUDA_MEMORY", "1048576000", 1);
  setenv("FAKECUDA_OTHERS", "104857600", 1);
  const json_t *memory = program_member(backend_cuda(program_json(0, "doctor")), "memory");
  assert_int_equal(json_array_size(memory), 2);
  assert_true(program_number(json_array_get(memory, 1), "device") == 1);
  assert_true(program_number(json_array_get(memory, 1), "device_mib") == 1000);
  assert_true(program_number(json_array_get(memory, 1), "taken_mib") == 100);
  assert_true(program_number(json_array_get(memory, 1), "free_mib") == 900);
  assert_int_equal(program_run("doctor"), 0);
  assert_non_null(strstr(program_out, "\n  device 1        1000.0        100.0        900.0\n"));
  setenv("FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:1", 1);
  assert_int_equal(program_run("doctor"), 0);
  assert_non_null(
      strstr(program_out, "\n  device 0   unknown: cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN"));
  assert_non_null(strstr(program_out, "\n  device 1        1000.0"));
}

/* ---- folders of code ---- */

static void refuses_libraries(const char *command, const char *text) {
  assert_int_equal(program_run("%s --set backend.use=cuda,cpu", command), 69);
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

/* The file is no library: it is refused before the dynamic linker sees it. */
static void libraries_that_others_can_change_are_refused(void **state) {
  (void)state;
  char text[4096];
  assert_int_equal(system("mkdir -p sub/lib && echo text > sub/lib/libcuda.so.1"), 0);
  file_write("model.ini", noise_ini);
  snprintf(text, sizeof text, "%s\n[backend.cuda]\nlibraries = lib\n", noise_ini);
  file_write("sub/model.ini", text);
  chmod("sub/lib/libcuda.so.1", 0666);
  refuses_libraries("plan model.ini --set backend.cuda.libraries=sub/lib",
                    "sub/lib/libcuda.so.1: refused, since everybody may write the file");
  refuses_libraries("plan sub/model.ini",
                    "sub/lib/libcuda.so.1: refused, since everybody may write the file");
  chmod("sub/lib/libcuda.so.1", 0644);
  chmod("sub/lib", 0777);
  refuses_libraries("plan sub/model.ini", "sub/lib: refused, since everybody may write the folder");
  refuses_libraries("plan model.ini --set backend.cuda.images=sub/lib", "sub/lib: refused");
  refuses_libraries("plan model.ini --set backend.cuda.libraries=sub/lib/none/deeper", "sub/lib: refused");
}

/* config.ini of a run folder may be another user's. */
static void libraries_that_a_run_folder_names_are_left_out(void **state) {
  (void)state;
  file_write("model.ini", noise_ini);
  assert_int_equal(program_run("train model.ini --output out --set run.name=r --set backend.use=cpu"), 0);
  assert_int_equal(system("printf '\\n[backend.cuda]\\nlibraries = lib\\nimages = lib\\ncache = lib\\n' "
                          ">> out/r/config.ini && mkdir -p out/r/lib && chmod 777 out/r/lib"),
                   0);
  assert_int_equal(program_run("eval out/r --set backend.use=cuda,cpu"), 0);
  assert_non_null(strstr(program_err, "[backend.cuda] libraries = lib is left out, since it names code"));
  assert_non_null(strstr(program_err, "[backend.cuda] images = lib is left out"));
  assert_non_null(strstr(program_err, "[backend.cuda] cache = lib is left out"));
  assert_int_equal(program_run("eval out/r --trust --set backend.use=cuda,cpu"), 69);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, device_open, program_close)

static int device_open(void **state) {
  static const char *const variables[] = {"FAKECUDA_DEVICES", "FAKECUDA_MEMORY", "FAKECUDA_OTHERS",
                                          "FAKECUDA_BYTES"};
  for (int i = 0; i < 4; i++) unsetenv(variables[i]);
  return double_open(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(several_steps_of_one_launch_are_one_graph),
      TEST(transforms_on_the_device_have_the_bits_of_the_host),
      TEST(a_batch_is_copied_before_its_pixels_are_floats),
      TEST(a_plan_that_does_not_fit_is_refused_with_what_holds_the_memory),
      TEST(the_doctor_lists_the_libraries_of_cuda),
      TEST(the_doctor_shows_the_memory_of_each_device),
      TEST(libraries_that_others_can_change_are_refused),
      TEST(libraries_that_a_run_folder_names_are_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
