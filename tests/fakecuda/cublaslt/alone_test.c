/* tests/fakecuda/cublaslt/alone_test.c: the double says that the driver's double is missing, and finds one
 * that was loaded as libcuda.so.1 with RTLD_LOCAL, as a plugin does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <cublasLt.h>
#include <dlfcn.h>
#include <string.h>

static void finds_the_driver(void **state) {
  (void)state;
  void *library = dlopen(FAKECUBLASLT_PATH, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  __typeof__(&cublasLtCreate) create = (__typeof__(&cublasLtCreate))dlsym(library, "cublasLtCreate");
  __typeof__(&cublasLtDestroy) destroy = (__typeof__(&cublasLtDestroy))dlsym(library, "cublasLtDestroy");
  const char *(*why)(void) = (const char *(*)(void))dlsym(library, "fakecublaslt_why");
  cublasLtHandle_t handle = NULL;
  assert_int_equal(create(&handle), CUBLAS_STATUS_NOT_INITIALIZED);
  assert_null(handle);
  assert_string_equal(why(), "cublasLtCreate: the double of libcuda.so.1 is not loaded");
  assert_non_null(dlopen(RIG_DRIVER_PATH, RTLD_NOW | RTLD_LOCAL));
  assert_int_equal(create(&handle), CUBLAS_STATUS_SUCCESS);
  assert_int_equal(destroy(handle), CUBLAS_STATUS_SUCCESS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_driver)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
