/* tests/unit/backends/cuda/sources_test.c: the compiler of device code: errors and warnings with their lines,
 * and architectures. Skipped where there is no NVRTC. kernel_table compiles the files of device/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/modules/compile.h"
#include "backends/cuda/modules/device_text.h"
#include "tests/unit/backends/cuda/rig.h"

static tn_cuda_libraries libraries;

static void an_error_has_the_line(void **state) {
  (void)state;
  tn_env env = cuda_rig_env();
  tn_cuda_compiler compiler;
  tn_cuda_image image;
  char error[TN_CUDA_ERROR_TEXT] = "";
  if (!cuda_rig_find_nvrtc(&libraries)) skip();
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, 90, &compiler), TN_OK);
  assert_int_equal(tn_cuda_compile(&compiler, "wrong.cu",
                                   "extern \"C\" __global__ void f() {\n  x = 1;\n  y = 1;\n}\n", &image,
                                   error),
                   TN_CUDA_REFUSED);
  assert_null(image.bytes);
  char *log = strchr(error, '\n');
  assert_non_null(log);
  assert_non_null(strstr(log, "wrong.cu(3): error: identifier \"y\" is undefined"));
  *log = '\0';
  assert_string_equal(error,
                      "nvrtcCompileProgram: NVRTC_ERROR_COMPILATION: wrong.cu(2): error: identifier \"x\" is "
                      "undefined");
}

static void a_warning_is_kept(void **state) {
  (void)state;
  tn_env env = cuda_rig_env();
  tn_cuda_compiler compiler;
  tn_cuda_image image;
  char error[TN_CUDA_ERROR_TEXT] = "";
  if (!cuda_rig_find_nvrtc(&libraries)) skip();
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, 90, &compiler), TN_OK);
  assert_int_equal(
      tn_cuda_compile(&compiler, "unused.cu", "extern \"C\" __global__ void f() { int x; }\n", &image, error),
      TN_CUDA_COMPILED);
  free(image.bytes);
  assert_non_null(strstr(error, "declared but never referenced"));
}

static void an_architecture_that_is_newer_than_the_compiler_gets_ptx(void **state) {
  (void)state;
  tn_env env = cuda_rig_env();
  tn_cuda_compiler compiler;
  if (!cuda_rig_find_nvrtc(&libraries)) skip();
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, 999, &compiler), TN_OK);
  assert_int_equal(strncmp(compiler.arch, "compute_", 8), 0);
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, 20, &compiler), TN_EUNAVAILABLE);
  assert_non_null(strstr(cuda_rig_text, "compute capability 2.0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_error_has_the_line), cmocka_unit_test(a_warning_is_kept),
      cmocka_unit_test(an_architecture_that_is_newer_than_the_compiler_gets_ptx)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
