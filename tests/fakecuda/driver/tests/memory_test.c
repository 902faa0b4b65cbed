/* Memory: accesses of the host, guards, limits, leaks. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakecuda/driver/tests/rig.h"

/* The signal that ends a child that reads a byte. */
static int reading_ends_with(const void *address) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int seen = *(const volatile char *)address;
    _exit(seen == 0 ? 0 : 1);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) > 1 ? SIGSEGV : 0; /* ASan exits */
}

static void the_host_cannot_touch_device_memory(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUdeviceptr x = rig_device(1000);
  assert_int_equal(reading_ends_with((void *)(uintptr_t)(x + 40)), SIGSEGV);
  LOGGED("the host accessed device memory at");
  OK(rig_add(&r, r.a, x, 1000, 1));
  assert_true(rig_first(&r, x) == 1);
  assert_int_equal(reading_ends_with((void *)(uintptr_t)x), SIGSEGV);
  LOGGED("byte 0 of allocation 1 of 4000 bytes (cuMemAlloc_v2) on device 0");
  OK(D.f_cuMemFree(x));
  assert_int_equal(reading_ends_with((void *)(uintptr_t)x), SIGSEGV);
  float *host = rig_pinned(10);
  assert_int_equal(reading_ends_with(host), 0);
  OK(D.f_cuMemFreeHost(host));
  assert_int_equal(reading_ends_with(host), SIGSEGV);
  rig_close(&r);
}

static void copies_go_both_ways(void **state) {
  (void)state;
  rig r;
  float pageable[4] = {1, 2, 3, 4}, back[4] = {0};
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  float *host = rig_pinned(4);
  OK(D.f_cuMemcpyHtoDAsync(x, pageable, sizeof pageable, r.a));
  memset(pageable, 0, sizeof pageable); /* it has been read */
  OK(D.f_cuMemsetD32Async(x + 8, 0x40A00000, 1, r.a));
  OK(D.f_cuMemcpyDtoHAsync(back, x, sizeof back, r.a)); /* it is done when the call returns */
  assert_true(back[0] == 1 && back[1] == 2 && back[2] == 5 && back[3] == 4);
  memcpy(host, back, sizeof back);
  OK(D.f_cuMemcpyHtoDAsync(x + 4, host, 8, r.a));
  OK(D.f_cuMemsetD8Async(x + 12, 0, 4, r.a));
  OK(D.f_cuMemcpyDtoHAsync(host, x, 16, r.a));
  OK(D.f_cuStreamSynchronize(r.a));
  assert_true(host[0] == 1 && host[1] == 1 && host[2] == 2 && host[3] == 0);
  OK(D.f_cuMemcpyHtoDAsync(x, NULL, 0, r.a));
  OK(D.f_cuMemFreeHost(host));
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

/* 2 bytes in each of 3 rows, 5 bytes apart: the others stay, and the last row needs no bytes behind it. */
static void rows_are_filled(void **state) {
  (void)state;
  rig r;
  unsigned char bytes[12], want[12] = {1, 7, 7, 1, 1, 1, 7, 7, 1, 1, 1, 7};
  rig_open(&r);
  CUdeviceptr x = rig_device(3);
  OK(D.f_cuMemsetD8Async(x, 1, sizeof bytes, r.a));
  OK(D.f_cuMemsetD2D8Async(x + 1, 5, 7, 2, 2, r.a));
  OK(D.f_cuMemsetD2D8Async(x + 11, 5, 7, 1, 1, r.a));
  OK(D.f_cuMemsetD2D8Async(x, 0, 9, 0, 3, r.a));
  OK(D.f_cuMemcpyDtoHAsync(bytes, x, sizeof bytes, r.a));
  assert_memory_equal(bytes, want, sizeof bytes);
  REFUSED(D.f_cuMemsetD2D8Async(x, 1, 7, 2, 2, r.a), CUDA_ERROR_INVALID_VALUE, "2 rows of 2 bytes, 1 apart");
  REFUSED(D.f_cuMemsetD2D8Async(x, 5, 7, 3, 3, r.a), CUDA_ERROR_INVALID_VALUE, "13 bytes");
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static void a_stream_writes_values(void **state) {
  (void)state;
  rig r;
  float back = 0;
  rig_open(&r);
  CUdeviceptr x = rig_device(2);
  float *host = rig_pinned(1);
  CUdeviceptr pinned = (CUdeviceptr)(uintptr_t)host;
  OK(D.f_cuStreamWriteValue32(r.a, x + 4, 0x40A00000, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(D.f_cuMemcpyDtoHAsync(&back, x + 4, sizeof back, r.a));
  OK(D.f_cuStreamWriteValue32(r.a, pinned, 0x40A00000, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(D.f_cuStreamSynchronize(r.a));
  assert_true(back == 5 && host[0] == 5);
  REFUSED(D.f_cuStreamWriteValue32(r.a, x + 2, 0, 0), CUDA_ERROR_INVALID_VALUE, "4 bytes at");
  REFUSED(D.f_cuStreamWriteValue32(r.a, pinned, 0, 2), CUDA_ERROR_INVALID_VALUE, "flags 2");
  REFUSED(D.f_cuStreamWriteValue32(r.a, x + 8, 0, 0), CUDA_ERROR_INVALID_VALUE, "neither of the device nor");
  REFUSED(D.f_cuStreamWriteValue32(r.a, pinned + 4, 0, 0), CUDA_ERROR_INVALID_VALUE,
          "neither of the device nor");
  OK(D.f_cuMemFreeHost(host));
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static void wrong_ranges_are_refused(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUdeviceptr x = rig_device(8), y = rig_device(8);
  float *host = rig_pinned(8);
  void *far = (void *)(uintptr_t)x;
  REFUSED(D.f_cuMemcpyHtoDAsync(x + 8, host, 32, r.a), CUDA_ERROR_INVALID_VALUE, "the target, 32 bytes from");
  REFUSED(D.f_cuMemcpyHtoDAsync(x, host + 2, 32, r.a), CUDA_ERROR_INVALID_VALUE, "the source, 32 bytes from");
  REFUSED(D.f_cuMemcpyHtoDAsync(x, far, 32, r.a), CUDA_ERROR_INVALID_VALUE, "is not inside of host memory");
  REFUSED(D.f_cuMemcpyDtoHAsync(far, x, 32, r.a), CUDA_ERROR_INVALID_VALUE, "is not inside of host memory");
  REFUSED(D.f_cuMemcpyDtoHAsync(NULL, x, 32, r.a), CUDA_ERROR_INVALID_VALUE, "the target is NULL");
  REFUSED(D.f_cuMemcpyDtoDAsync(y, (CUdeviceptr)(uintptr_t)host, 32, r.a), CUDA_ERROR_INVALID_VALUE,
          "is not inside of device memory");
  REFUSED(D.f_cuMemcpyDtoDAsync(x + 4, x, 16, r.a), CUDA_ERROR_INVALID_VALUE, "overlap");
  REFUSED(D.f_cuMemsetD32Async(x + 2, 0, 1, r.a), CUDA_ERROR_INVALID_VALUE, "elements of 4 bytes");
  REFUSED(D.f_cuMemsetD32Async(x, 0, 9, r.a), CUDA_ERROR_INVALID_VALUE, "the target, 36 bytes");
  REFUSED(D.f_cuMemsetD32Async(x, 0, SIZE_MAX / 2, r.a), CUDA_ERROR_INVALID_VALUE, "elements of 4 bytes");
  REFUSED(D.f_cuMemFree(x + 4), CUDA_ERROR_INVALID_VALUE, "not the beginning of a live allocation");
  REFUSED(D.f_cuMemFree((CUdeviceptr)(uintptr_t)host), CUDA_ERROR_INVALID_VALUE, "not the beginning");
  REFUSED(D.f_cuMemFreeHost(far), CUDA_ERROR_INVALID_VALUE, "not the beginning");
  REFUSED(D.f_cuMemAlloc(&y, 0), CUDA_ERROR_INVALID_VALUE, "cuMemAlloc_v2: 0 bytes");
  OK(D.f_cuMemFree(x));
  REFUSED(D.f_cuMemFree(x), CUDA_ERROR_INVALID_VALUE, "which is freed");
  OK(D.f_cuMemFree(y));
  OK(D.f_cuMemFreeHost(host));
  rig_close(&r);
}

static void a_write_behind_the_end_is_found(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUdeviceptr x = rig_device(100);
  OK(rig_add(&r, r.a, x, 101, 1));
  OK(D.f_cuStreamSynchronize(r.a));
  QUIET();
  OK(D.f_cuMemFree(x));
  LOGGED("byte 400 was written, behind the end of allocation 1 of 400 bytes (cuMemAlloc_v2) on device 0");
  rig_close(&r);
}

static void the_limit_holds(void **state) {
  (void)state;
  rig r;
  size_t available, total;
  CUdeviceptr x, y;
  rig_set("FAKECUDA_MEMORY", "100000");
  rig_open(&r);
  OK(D.f_cuDeviceTotalMem(&total, 0));
  assert_int_equal(total, 100000);
  OK(D.f_cuMemAlloc(&x, 60000));
  IS(D.f_cuMemAlloc(&y, 40001), CUDA_ERROR_OUT_OF_MEMORY);
  OK(D.f_cuMemGetInfo(&available, &total));
  assert_int_equal(available, 40000);
  OK(D.f_cuMemAlloc(&y, 40000));
  OK(D.f_cuMemFree(x));
  OK(D.f_cuMemGetInfo(&available, &total));
  assert_int_equal(available, 60000);
  OK(D.f_cuMemFree(y));
  rig_close(&r);
}

static void pointers_have_attributes(void **state) {
  (void)state;
  rig r;
  unsigned type;
  size_t bytes;
  int device, local = 0;
  CUdeviceptr start;
  rig_open(&r);
  CUdeviceptr x = rig_device(8);
  void *host = rig_pinned(8);
  OK(D.f_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x + 5));
  assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
  OK(D.f_cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, x + 5));
  OK(D.f_cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, x + 5));
  OK(D.f_cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, x + 5));
  assert_true(start == x && bytes == 32 && device == 0);
  OK(D.f_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
  assert_int_equal(type, CU_MEMORYTYPE_HOST);
  IS(D.f_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&local),
     CUDA_ERROR_INVALID_VALUE);
  assert_true(D.is_device_memory((void *)(uintptr_t)x, 32) == 1);
  assert_true(D.is_device_memory((void *)(uintptr_t)(x + 1), 32) == 0);
  assert_true(D.is_device_memory(host, 4) == 0);
  OK(D.f_cuMemFree(x));
  OK(D.f_cuMemFreeHost(host));
  rig_close(&r);
}

static void a_host_that_does_not_wait_is_found(void **state) {
  (void)state;
  rig r;
  rig_set("FAKECUDA_ORDER", "lazy");
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  float *host = rig_pinned(4);
  OK(D.f_cuMemcpyHtoDAsync(x, host, 16, r.a));
  host[1] = 7;
  OK(D.f_cuStreamSynchronize(r.a));
  LOGGED("before the copy from there was done");
  OK(D.f_cuMemFreeHost(host));
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static void leaks_are_reported(void **state) {
  (void)state;
  rig r;
  CUstream s;
  CUevent e;
  CUgraph graph;
  CUgraphExec exec;
  CUmodule m;
  rig_open(&r);
  rig_device(8);
  rig_pinned(8);
  OK(D.f_cuStreamCreate(&s, 0));
  OK(D.f_cuEventCreate(&e, 0));
  OK(D.f_cuModuleLoadData(&m, rig_image()));
  OK(D.f_cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(D.f_cuStreamEndCapture(s, &graph));
  OK(D.f_cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(D.f_cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  rig_release(&r);
  const char *text = rig_log();
  const char *const lines[] = {"leak on device 0: allocation 1 of 32 bytes (cuMemAlloc_v2)\n",
                               "leak on device 0: allocation 2 of 32 bytes (cuMemHostAlloc)\n",
                               "leak on device 0: stream 4\n",
                               "leak on device 0: event 1\n",
                               "leak on device 0: module 2\n",
                               "leak on device 0: graph 1\n",
                               "leak on device 0: executable graph 2\n",
                               "leak on device 0: a capture of stream 4 that has not ended\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) assert_non_null(strstr(text, lines[i]));
  rig_unload();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_host_cannot_touch_device_memory),
    cmocka_unit_test(copies_go_both_ways),
    cmocka_unit_test(rows_are_filled),
    cmocka_unit_test(a_stream_writes_values),
    cmocka_unit_test(wrong_ranges_are_refused),
    cmocka_unit_test(a_write_behind_the_end_is_found),
    cmocka_unit_test(the_limit_holds),
    cmocka_unit_test(pointers_have_attributes),
    cmocka_unit_test(a_host_that_does_not_wait_is_found),
    cmocka_unit_test(leaks_are_reported),
};
RIG_MAIN(tests)
