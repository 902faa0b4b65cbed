/* The library of NCCL: found or refused, by place, version and functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backends/nccl/library.h"
#include "tests/unit/backends/cuda/rig.h"

static tn_nccl_library library;

static void refuses(const char *folder, const char *const *parts) {
  tn_env env = cuda_rig_env();
  assert_int_equal(tn_nccl_library_open(&env, folder, &library), TN_EUNAVAILABLE);
  for (; *parts != NULL; parts++)
    if (strstr(cuda_rig_text, *parts) == NULL) fail_msg("'%s' does not say '%s'", cuda_rig_text, *parts);
}

static void an_old_version_is_refused_with_version_place_and_remedy(void **state) {
  (void)state;
  refuses(STUBS "/old", (const char *const[]){STUBS "/old/libnccl.so.2 is of version 2.17.1 (21701)",
                                              "expected 2.18.0", "nvidia-nccl-cu13", NULL});
}

static void a_library_that_lacks_a_function_is_refused(void **state) {
  (void)state;
  refuses(STUBS "/bare", (const char *const[]){STUBS "/bare/libnccl.so.2, version 2.28.9, has no function",
                                               "ncclGetErrorString", "libnccl2", NULL});
}

static void a_version_that_cannot_be_read_is_refused(void **state) {
  (void)state;
  refuses(STUBS "/mute",
          (const char *const[]){STUBS "/mute/libnccl.so.2: ncclGetVersion returns 3", "install NCCL", NULL});
}

/* Where NVIDIA's own library is, all of its functions are found under their names. */
static void every_function_of_a_real_library_is_found(void **state) {
  (void)state;
  tn_env env = cuda_rig_env();
  void *handle = NULL;
  char path[TN_NVIDIA_PATH], why[TN_NVIDIA_WHY];
  static const tn_nvidia_wanted wanted = {"NCCL", {"libnccl.so.2"}, ""};
  if (!tn_nvidia_search_library("", &wanted, &handle, path, why)) skip();
  assert_int_equal(tn_nccl_library_open(&env, "", &library), TN_OK);
  assert_true(library.version >= 21800);
  assert_string_equal(library.path, path);
#define FOUND(function) assert_true((void *)library.function == dlsym(handle, #function));
  TN_NCCL_POINTS(FOUND)
  dlclose(handle);
}

static void the_driver_is_that_of_the_backend(void **state) {
  (void)state;
  tn_nccl_driver driver;
  tn_cuda native = {.struct_size = offsetof(tn_cuda, driver)};
  tn_env env = cuda_rig_env();
  assert_int_equal(tn_nccl_driver_find(&env, &native, &driver), TN_EUNSUPPORTED);
  assert_non_null(strstr(cuda_rig_text, "cuda.1 does not give the driver's handle"));
  native.struct_size = sizeof native;
  native.driver = dlopen(STUBS "/old/libnccl.so.2", RTLD_NOW);
  assert_non_null(native.driver);
  assert_int_equal(tn_nccl_driver_find(&env, &native, &driver), TN_EUNAVAILABLE);
  assert_non_null(strstr(cuda_rig_text, "the driver has no function cuGetErrorName"));
  dlclose(native.driver);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_old_version_is_refused_with_version_place_and_remedy),
      cmocka_unit_test(a_library_that_lacks_a_function_is_refused),
      cmocka_unit_test(a_version_that_cannot_be_read_is_refused),
      cmocka_unit_test(every_function_of_a_real_library_is_found),
      cmocka_unit_test(the_driver_is_that_of_the_backend),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
