/* tests/unit/backends/cuda/sources_test.c: every file of device code compiles with NVRTC, without a word, for
 * each generation of GPUs. Skipped where there is no NVRTC. */
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

static void compiles_for(int32_t arch) {
  tn_env env = cuda_rig_env();
  tn_cuda_compiler compiler;
  if (!cuda_rig_find_nvrtc(&libraries)) {
    print_message("skipped: %s\n", cuda_rig_text);
    skip();
  }
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, arch, &compiler), TN_OK);
  for (const tn_cuda_text *t = tn_cuda_texts; t->path != NULL; t++) {
    char error[TN_CUDA_ERROR_TEXT] = "";
    tn_cuda_image image;
    if (strcmp(strrchr(t->path, '.'), ".cu") != 0) continue;
    if (!tn_cuda_compile(&compiler, t->path, t->text, &image, error)) fail_msg("%s: %s", t->path, error);
    assert_string_equal(error, "");
    assert_true(image.n > 0);
    free(image.bytes);
  }
}

static void for_turing(void **state) {
  (void)state;
  compiles_for(75);
}
static void for_ampere(void **state) {
  (void)state;
  compiles_for(80);
}
static void for_hopper(void **state) {
  (void)state;
  compiles_for(90);
}
static void for_blackwell(void **state) {
  (void)state;
  compiles_for(100);
}

static void an_error_has_the_line(void **state) {
  (void)state;
  tn_env env = cuda_rig_env();
  tn_cuda_compiler compiler;
  tn_cuda_image image;
  char error[TN_CUDA_ERROR_TEXT] = "";
  if (!cuda_rig_find_nvrtc(&libraries)) skip();
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, 90, &compiler), TN_OK);
  assert_false(tn_cuda_compile(&compiler, "wrong.cu", "extern \"C\" __global__ void f() {\n  x = 1;\n}\n",
                               &image, error));
  assert_null(image.bytes);
  assert_non_null(strstr(error, "wrong.cu(2): error: identifier \"x\" is undefined"));
}

static void a_warning_is_kept(void **state) {
  (void)state;
  tn_env env = cuda_rig_env();
  tn_cuda_compiler compiler;
  tn_cuda_image image;
  char error[TN_CUDA_ERROR_TEXT] = "";
  if (!cuda_rig_find_nvrtc(&libraries)) skip();
  assert_int_equal(tn_cuda_compiler_open(&env, &libraries, 90, &compiler), TN_OK);
  assert_true(tn_cuda_compile(&compiler, "unused.cu", "extern \"C\" __global__ void f() { int x; }\n", &image,
                              error));
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
      cmocka_unit_test(for_turing),
      cmocka_unit_test(for_ampere),
      cmocka_unit_test(for_hopper),
      cmocka_unit_test(for_blackwell),
      cmocka_unit_test(an_error_has_the_line),
      cmocka_unit_test(a_warning_is_kept),
      cmocka_unit_test(an_architecture_that_is_newer_than_the_compiler_gets_ptx)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
