/* The sources of these tests are CUDA C: the real NVRTC and nvcc compile them, where they are installed. */
#include <dlfcn.h>
#include <nvrtc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

static const char *const sources[] = {"threads.cu", "wrong.cu", "templates.cu", "intrinsics.cu"};
enum { N_SOURCES = sizeof sources / sizeof *sources };
static const char *const architectures[] = {"--gpu-architecture=sm_75", "--gpu-architecture=sm_80",
                                            "--gpu-architecture=sm_90", "--gpu-architecture=sm_100"};

typedef struct real_nvrtc {
  __typeof__(nvrtcCreateProgram) *create;
  __typeof__(nvrtcCompileProgram) *compile;
  __typeof__(nvrtcGetProgramLogSize) *log_size;
  __typeof__(nvrtcGetProgramLog) *log;
  __typeof__(nvrtcDestroyProgram) *destroy;
} real_nvrtc;

static void *open_real(void) {
  static const char *const names[] = {
      "/usr/local/cuda/lib64/libnvrtc.so.13", "/opt/cuda/lib64/libnvrtc.so.13",
      "/usr/local/cuda/lib64/libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so.12"};
  void *library = NULL;
  for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return library;
}

static void find(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  if (!found) fail_msg("no %s", name);
  memcpy(function, &found, sizeof found);
}

static char *read_source(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", FAKECUDA_SOURCES, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char *text = calloc(1, 1 << 18);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
  fclose(file);
  return text;
}

static void compile_one(const real_nvrtc *nvrtc, const char *name, const char *architecture) {
  char *text = read_source(name);
  nvrtcProgram program;
  const char *options[] = {architecture, "--std=c++17"};
  assert_int_equal(nvrtc->create(&program, text, name, 0, NULL, NULL), NVRTC_SUCCESS);
  nvrtcResult result = nvrtc->compile(program, 2, options);
  size_t bytes = 0;
  nvrtc->log_size(program, &bytes);
  char *log = calloc(1, bytes + 1);
  assert_non_null(log);
  nvrtc->log(program, log);
  if (result != NVRTC_SUCCESS || strstr(log, "warning")) fail_msg("%s: %s", architecture, log);
  free(log);
  free(text);
  nvrtc->destroy(&program);
}

static void real_nvrtc_compiles_the_sources(void **state) {
  (void)state;
  void *library = open_real();
  if (!library) {
    print_message("no libnvrtc.so of NVIDIA here\n");
    skip();
  }
  real_nvrtc nvrtc;
  find(library, "nvrtcCreateProgram", &nvrtc.create);
  find(library, "nvrtcCompileProgram", &nvrtc.compile);
  find(library, "nvrtcGetProgramLogSize", &nvrtc.log_size);
  find(library, "nvrtcGetProgramLog", &nvrtc.log);
  find(library, "nvrtcDestroyProgram", &nvrtc.destroy);
  for (int i = 0; i < N_SOURCES; i++)
    for (size_t a = 0; a < sizeof architectures / sizeof *architectures; a++)
      compile_one(&nvrtc, sources[i], architectures[a]);
}

static void nvcc_compiles_the_sources(void **state) {
  (void)state;
  const char *nvcc = system("command -v nvcc >/dev/null 2>&1") == 0 ? "nvcc" : "/usr/local/cuda/bin/nvcc";
  char command[4096];
  snprintf(command, sizeof command, "test -x \"$(command -v %s)\"", nvcc);
  if (system(command) != 0) {
    print_message("no nvcc here\n");
    skip();
  }
  for (int i = 0; i < N_SOURCES; i++) {
    snprintf(command, sizeof command,
             "%s -std=c++17 -Werror all-warnings -fatbin -gencode arch=compute_75,code=sm_75 -gencode "
             "arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode "
             "arch=compute_100,code=sm_100 -o "
             "/dev/null '%s/%s'",
             nvcc, FAKECUDA_SOURCES, sources[i]);
    assert_int_equal(system(command), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(real_nvrtc_compiles_the_sources),
                                     cmocka_unit_test(nvcc_compiles_the_sources)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
