#include "tests/fakecuda/kernels/rig.h"

#include <nvrtc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

char rig_why[FAKE_TEXT];

static void rig_fail_with_log(nvrtcProgram program) {
  size_t bytes = 0;
  nvrtcGetProgramLogSize(program, &bytes);
  char *log = calloc(1, bytes + 1);
  if (log) nvrtcGetProgramLog(program, log);
  fail_msg("%s", log);
}

fake_module *rig_compile(const char *source, const char *name) {
  nvrtcProgram program;
  const char *options[] = {"--gpu-architecture=sm_80"};
  assert_int_equal(nvrtcCreateProgram(&program, source, name, 0, NULL, NULL), NVRTC_SUCCESS);
  if (nvrtcCompileProgram(program, 1, options) != NVRTC_SUCCESS) rig_fail_with_log(program);
  size_t bytes = 0;
  assert_int_equal(nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  char *image = malloc(bytes);
  assert_non_null(image);
  assert_int_equal(nvrtcGetCUBIN(program, image), NVRTC_SUCCESS);
  assert_int_equal(nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  fake_module *module = fake_module_load(image, rig_why);
  free(image);
  if (!module) fail_msg("%s", rig_why);
  return module;
}

char *rig_read_source(const char *name) {
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

fake_module *rig_compile_file(const char *name) {
  char *text = rig_read_source(name);
  fake_module *module = rig_compile(text, name);
  free(text);
  return module;
}

int rig_launch(const fake_module *module, const char *kernel, fake_launch launch, const uint64_t *parameters,
               int32_t count) {
  const fake_function *function = fake_module_function(module, kernel);
  if (!function) fail_msg("the module has no kernel '%s'", kernel);
  assert_int_equal(fake_function_parameters(function), count);
  assert_int_equal(fake_function_buffer_bytes(function), 8 * count);
  return fake_function_run(function, &launch, parameters, rig_why);
}
