/* The regions of training steps as CUDA C: each compiles with NVRTC, without a warning, and a deep net has
 * few different ones. */
#include <dirent.h>
#include <stdlib.h>

#include "program.h"

#include "backends/cuda/modules/compile.h"
#include "tests/unit/backends/cuda/rig.h"

static tn_cuda_libraries libraries;

static void compile(const char *path, const char *text, int32_t arch) {
  tn_env env = cuda_rig_env();
  tn_cuda_compiler compiler;
  tn_cuda_image image;
  char error[TN_CUDA_ERROR_TEXT] = "";
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, arch, &compiler), TN_OK);
  if (tn_cuda_compile(&compiler, path, text, &image, error) != TN_CUDA_COMPILED || *error != '\0')
    fail_msg("%s: %s", path, error);
  free(image.bytes);
}

/* ---- programs ---- */

static char *read_text(const char *path) {
  static char text[1 << 17];
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  assert_true(n < sizeof text - 1);
  text[n] = '\0';
  return text;
}

/* An example's model and optimizer on other data. */
static void write_run(const char *example, const char *data) {
  char path[512];
  static char ini[1 << 16];
  snprintf(path, sizeof path, EXAMPLES "/%s.ini", example);
  const char *model = strstr(read_text(path), "[model]");
  assert_non_null(model);
  snprintf(ini, sizeof ini, "[run]\nname = regions\nmax_steps = 1\n[data]\n%s%s", data, model);
  file_write("run.ini", ini);
}

static int compile_all(const char *folder) {
  char path[512];
  int n = 0;
  DIR *files = opendir(folder);
  assert_non_null(files);
  for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
    if (strstr(file->d_name, ".cu") == NULL) continue;
    snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
    const char *text = read_text(path);
    compile(path, text, 80);
    compile(path, text, 90);
    n++;
  }
  closedir(files);
  return n;
}

/* The number of different regions in the training step. The probe's first launch ends the run. */
static int regions_of_run(const char *precision) {
  char folder[] = "regions-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("PROBE_FOLDER", folder, 1);
  assert_int_not_equal(program_run("train run.ini --plugin " PROBE
                                   " --set backend.use=cpu --set precision.policy=%s",
                                   precision),
                       0);
  if (strstr(program_err, "a probe") == NULL) fail_msg("%s", program_err);
  int n = compile_all(folder);
  print_message("in %s: %d different regions\n", precision, n);
  return n;
}

static void skip_without_nvrtc(void) {
  if (!cuda_rig_find_nvrtc(&libraries)) skip();
}

static void regions_of_a_multilayer_perceptron(void **state) {
  (void)state;
  skip_without_nvrtc();
  write_run("mnist_mlp", "source = random\nshape = 1, 28, 28\nclasses = 10\nsamples = 64\nbatch = 32\n");
  assert_in_range(regions_of_run("fp32"), 1, 10);
}

/* Twenty blocks of convolutions in four sizes have the same few modules, each for both layouts of images. */
static void regions_of_a_residual_net(void **state) {
  (void)state;
  skip_without_nvrtc();
  write_run("cifar10_resnet18", "source = random\nshape = 3, 32, 32\nclasses = 10\nsamples = 8\nbatch = 4\n");
  assert_in_range(regions_of_run("fp16"), 10, 60);
}

static void regions_of_a_transformer(void **state) {
  (void)state;
  static char text[4096];
  skip_without_nvrtc();
  for (size_t i = 0; i + 1 < sizeof text; i++) text[i] = (char)('!' + i % 65);
  file_write("text.txt", text);
  write_run("shakespeare_char", "source = text\nfile = text.txt\ntokens = 64\nbatch = 4\n");
  assert_in_range(regions_of_run("bf16"), 10, 60);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(regions_of_a_multilayer_perceptron, program_open, program_close),
      cmocka_unit_test_setup_teardown(regions_of_a_residual_net, program_open, program_close),
      cmocka_unit_test_setup_teardown(regions_of_a_transformer, program_open, program_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
