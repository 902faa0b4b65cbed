/* The library as a whole: versions, devices, contexts, failures on request, counts. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/fakecuda/driver/tests/rig.h"

static void nothing_works_before_init(void **state) {
  (void)state;
  int n;
  CUstream s;
  rig_load();
  OK(D.f_cuDriverGetVersion(&n));
  assert_int_equal(n, CUDA_VERSION);
  REFUSED(D.f_cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED, "cuDeviceGetCount: cuInit");
  REFUSED(D.f_cuInit(3), CUDA_ERROR_INVALID_VALUE, "flags");
  OK(D.f_cuInit(0));
  OK(D.f_cuDeviceGetCount(&n));
  assert_int_equal(n, 1);
  REFUSED(D.f_cuStreamCreate(&s, 0), CUDA_ERROR_INVALID_CONTEXT, "no current context");
  rig_unload();
}

static void a_machine_without_devices(void **state) {
  (void)state;
  rig_set("FAKECUDA_DEVICES", "0");
  rig_load();
  IS(D.f_cuInit(0), CUDA_ERROR_NO_DEVICE);
  rig_unload();
}

static void devices_have_attributes(void **state) {
  (void)state;
  CUdevice device;
  CUuuid one, two;
  char name[64];
  int value;
  static const struct {
    CUdevice_attribute which;
    int value;
  } expected[] = {{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                  {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
                  {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 6},
                  {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448}};
  rig_set("FAKECUDA_DEVICES", "2");
  rig_set("FAKECUDA_ARCH", "86");
  rig_set("FAKECUDA_VERSION", "11080");
  rig_load();
  OK(D.f_cuInit(0));
  OK(D.f_cuDriverGetVersion(&value));
  assert_int_equal(value, 11080);
  OK(D.f_cuDeviceGet(&device, 1));
  OK(D.f_cuDeviceGetName(name, sizeof name, device));
  assert_non_null(strstr(name, "fakecuda"));
  OK(D.f_cuDeviceGetUuid(&one, 0));
  OK(D.f_cuDeviceGetUuid(&two, 1));
  assert_true(memcmp(&one, &two, sizeof one) != 0);
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    OK(D.f_cuDeviceGetAttribute(&value, expected[i].which, device));
    assert_int_equal(value, expected[i].value);
  }
  QUIET();
  REFUSED(D.f_cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE, "device 2 of 2");
  REFUSED(D.f_cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0), CUDA_ERROR_INVALID_VALUE, "9999");
  rig_unload();
}

/* CUDA_VISIBLE_DEVICES hides devices and orders the others. */
static void some_devices_are_visible(void **state) {
  (void)state;
  static const struct {
    const char *list;
    int n, first; /* the bus of device 0 */
  } cases[] = {{"3,1", 2, 4}, {"2,9,1", 1, 3}, {"0", 1, 1}, {"GPU-1", 4, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int n, bus;
    CUuuid id;
    rig_set("FAKECUDA_DEVICES", "4");
    rig_set("CUDA_VISIBLE_DEVICES", cases[i].list);
    rig_load();
    OK(D.f_cuInit(0));
    OK(D.f_cuDeviceGetCount(&n));
    OK(D.f_cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
    OK(D.f_cuDeviceGetUuid(&id, 0));
    assert_true(n == cases[i].n && bus == cases[i].first && id.bytes[15] == bus - 1);
    rig_unload();
  }
  rig_set("FAKECUDA_DEVICES", "4");
  rig_set("CUDA_VISIBLE_DEVICES", "");
  rig_load();
  IS(D.f_cuInit(0), CUDA_ERROR_NO_DEVICE);
  rig_unload();
}

static void errors_have_names(void **state) {
  (void)state;
  const char *text;
  rig_load();
  OK(D.f_cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  OK(D.f_cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  assert_non_null(text);
  IS(D.f_cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
  assert_null(text);
  rig_unload();
}

static void other_names_are_not_there(void **state) {
  (void)state;
  rig_load();
  assert_null(dlsym(rig_library, "cuMemAllocManaged"));
  assert_null(dlsym(rig_library, "cuGetProcAddress_v2"));
  assert_null(dlsym(rig_library, "cuMemAlloc")); /* of CUDA 3.1 */
  assert_null(dlsym(rig_library, "tn_sim_push_task"));
  assert_non_null(dlsym(rig_library, "cuEventElapsedTime"));
  assert_non_null(dlsym(rig_library, "cuEventElapsedTime_v2"));
  rig_unload();
}

/* ---- contexts ---- */

static void *current_elsewhere(void *arg) {
  D.f_cuCtxGetCurrent(arg);
  return NULL;
}

static void contexts_are_of_threads(void **state) {
  (void)state;
  CUcontext c, again, current;
  CUdevice device;
  pthread_t thread;
  rig_load();
  OK(D.f_cuInit(0));
  OK(D.f_cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
  REFUSED(D.f_cuDevicePrimaryCtxSetFlags(0, 0x1000), CUDA_ERROR_INVALID_VALUE, "flags");
  OK(D.f_cuDevicePrimaryCtxRetain(&c, 0));
  OK(D.f_cuDevicePrimaryCtxRetain(&again, 0));
  assert_ptr_equal(c, again);
  OK(D.f_cuCtxPushCurrent(c));
  OK(D.f_cuCtxGetDevice(&device));
  pthread_create(&thread, NULL, current_elsewhere, &current);
  pthread_join(thread, NULL);
  assert_null(current);
  OK(D.f_cuDevicePrimaryCtxRelease(0));
  OK(D.f_cuCtxSynchronize());
  OK(D.f_cuDevicePrimaryCtxRelease(0));
  REFUSED(D.f_cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED, "was released");
  REFUSED(D.f_cuCtxSetCurrent(c), CUDA_ERROR_INVALID_CONTEXT, "no live context");
  REFUSED(D.f_cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT, "not retained");
  OK(D.f_cuCtxPopCurrent(&again));
  REFUSED(D.f_cuCtxPopCurrent(&again), CUDA_ERROR_INVALID_CONTEXT, "no context is pushed");
  rig_unload();
}

/* ---- failures on request, counts ---- */

static void calls_fail_on_request(void **state) {
  (void)state;
  rig r;
  CUdeviceptr x, y;
  rig_set("FAKECUDA_FAIL",
          "cuMemAlloc_v2:2=2, cuLaunchKernel:1,cublasLtMatmul:2, cuMemFree_v2:1, nvrtcVersion:2+=6");
  rig_open(&r);
  OK(D.f_cuMemAlloc(&x, 4));
  IS(D.f_cuMemAlloc(&y, 4), CUDA_ERROR_OUT_OF_MEMORY);
  IS(rig_add(&r, r.a, x, 1, 1), CUDA_ERROR_UNKNOWN);
  OK(rig_add(&r, r.a, x, 1, 1));
  assert_int_equal(D.call("cublasLtMatmul"), 0);
  assert_int_equal(D.call("cublasLtMatmul"), CUDA_ERROR_UNKNOWN);
  assert_int_equal(D.call("cublasLtMatmul"), 0);
  assert_int_equal(D.call("nvrtcVersion"), 0);
  assert_int_equal(D.call("nvrtcVersion"), 6);
  assert_int_equal(D.call("nvrtcVersion"), 6);
  IS(D.f_cuMemFree(x), CUDA_ERROR_UNKNOWN); /* a call that frees does so all the same */
  rig_close(&r);
}

static void calls_are_counted(void **state) {
  (void)state;
  rig r;
  char path[64], text[4096];
  snprintf(path, sizeof path, "/tmp/fakecuda-counts-%d", (int)getpid());
  setenv("FAKECUDA_COUNTS", path, 1);
  rig_open(&r);
  D.call("cublasLtMatmul");
  rig_close(&r);
  unsetenv("FAKECUDA_COUNTS");
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  unlink(path);
  assert_non_null(strstr(text, "cuStreamCreate 2\n"));
  assert_non_null(strstr(text, "cuDevicePrimaryCtxRelease_v2 1\n"));
  assert_non_null(strstr(text, "cublasLtMatmul 1\n"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_works_before_init), cmocka_unit_test(a_machine_without_devices),
    cmocka_unit_test(devices_have_attributes),   cmocka_unit_test(some_devices_are_visible),
    cmocka_unit_test(errors_have_names),         cmocka_unit_test(other_names_are_not_there),
    cmocka_unit_test(contexts_are_of_threads),   cmocka_unit_test(calls_fail_on_request),
    cmocka_unit_test(calls_are_counted),
};
RIG_MAIN(tests)
