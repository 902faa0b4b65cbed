/* Modules, functions, launches: parameters and limits. */
#include "tests/fakecuda/driver/tests/rig.h"

#include <elf.h>

static CUfunction function(const rig *r, const char *name) {
  CUfunction f;
  OK(D.f_cuModuleGetFunction(&f, r->module, name));
  return f;
}

static CUresult launch(const rig *r, CUfunction f, unsigned grid, unsigned block, unsigned shared) {
  CUdeviceptr none = 0;
  void *parameters[] = {&none};
  return D.f_cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, r->a, parameters, NULL);
}

static void parameters_come_in_a_buffer(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  struct {
    CUdeviceptr x;
    int n;
    float value;
  } buffer = {x, 4, 2.5f};
  size_t bytes = sizeof buffer, fewer = sizeof buffer - 4;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  void *wrong[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &fewer,
                   CU_LAUNCH_PARAM_END};
  void *missing[] = {&x, NULL, NULL};
  OK(D.f_cuLaunchKernel(r.add, 1, 1, 1, 1, 1, 1, 0, r.a, NULL, extra));
  buffer.value = 100; /* the launch has a copy */
  assert_true(rig_first(&r, x) == 2.5f);
  REFUSED(D.f_cuLaunchKernel(r.add, 1, 1, 1, 1, 1, 1, 0, r.a, NULL, wrong), CUDA_ERROR_INVALID_VALUE,
          "'add': a buffer of 12 bytes");
  REFUSED(D.f_cuLaunchKernel(r.add, 1, 1, 1, 1, 1, 1, 0, r.a, missing, extra), CUDA_ERROR_INVALID_VALUE,
          "both kernelParams and extra");
  REFUSED(D.f_cuLaunchKernel(r.add, 1, 1, 1, 1, 1, 1, 0, r.a, missing, NULL), CUDA_ERROR_INVALID_VALUE,
          "parameter 1 is missing");
  REFUSED(D.f_cuLaunchKernel(r.add, 1, 1, 1, 1, 1, 1, 0, r.a, NULL, NULL), CUDA_ERROR_INVALID_VALUE,
          "parameter 0 is missing");
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static void limits_of_shape_hold(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUfunction f = function(&r, "shared");
  OK(launch(&r, f, 70000, 2, 0));
  REFUSED(launch(&r, f, 0, 32, 0), CUDA_ERROR_INVALID_VALUE, "'shared': a grid of 0 1 1");
  REFUSED(launch(&r, f, 1, 0, 0), CUDA_ERROR_INVALID_VALUE, "blocks of 0 1 1");
  REFUSED(launch(&r, f, 1, 2048, 0), CUDA_ERROR_INVALID_VALUE, "blocks of 2048 1 1");
  REFUSED(launch(&r, f, 1, 512, 0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
          "512 threads in a block, at most 256");
  REFUSED(D.f_cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, r.a, NULL, NULL), CUDA_ERROR_INVALID_VALUE, "grid");
  REFUSED(D.f_cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, r.a, NULL, NULL), CUDA_ERROR_INVALID_VALUE, "grid");
  REFUSED(D.f_cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE,
          "default stream");
  rig_close(&r);
}

static void shared_memory_must_be_asked_for(void **state) {
  (void)state;
  rig r;
  int value, blocks;
  rig_open(&r);
  CUfunction f = function(&r, "shared");
  OK(D.f_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
  assert_int_equal(value, 1024);
  OK(D.f_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
  assert_int_equal(value, 256);
  OK(launch(&r, f, 1, 32, 48 * 1024 - 1024));
  REFUSED(launch(&r, f, 1, 32, 48 * 1024), CUDA_ERROR_INVALID_VALUE, "cuFuncSetAttribute allows 48128");
  OK(D.f_cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
  OK(launch(&r, f, 1, 32, 200000));
  OK(D.f_cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 100000));
  assert_int_equal(blocks, 2);
  OK(D.f_cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
  assert_int_equal(blocks, 8);
  REFUSED(D.f_cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448),
          CUDA_ERROR_INVALID_VALUE, "at most 231424");
  REFUSED(D.f_cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 4), CUDA_ERROR_INVALID_VALUE,
          "cannot be set");
  rig_close(&r);
}

static void handles_end_with_their_module(void **state) {
  (void)state;
  rig r;
  CUmodule m;
  CUfunction f, same;
  char none[64] = "no image";
  uint32_t fatbin[32] = {0xBA55ED50};
  Elf64_Ehdr cubin = {.e_ident = {0x7f, 'E', 'L', 'F'}, .e_machine = 190};
  rig_open(&r);
  REFUSED(D.f_cuModuleLoadData(&m, none), CUDA_ERROR_INVALID_IMAGE, "cuModuleLoadData: ");
  IS(D.f_cuModuleLoadDataEx(&m, fatbin, 0, NULL, NULL), CUDA_ERROR_NO_BINARY_FOR_GPU);
  IS(D.f_cuModuleLoadData(&m, &cubin), CUDA_ERROR_NO_BINARY_FOR_GPU);
  OK(D.f_cuModuleLoadDataEx(&m, rig_image(), 0, NULL, NULL));
  IS(D.f_cuModuleGetFunction(&f, m, "none"), CUDA_ERROR_NOT_FOUND);
  OK(D.f_cuModuleGetFunction(&f, m, "refuse"));
  OK(D.f_cuModuleGetFunction(&same, m, "refuse"));
  assert_ptr_equal(f, same);
  QUIET();
  OK(D.f_cuModuleUnload(m));
  REFUSED(launch(&r, f, 1, 1, 0), CUDA_ERROR_INVALID_HANDLE, "no function of a live module");
  REFUSED(D.f_cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE, "no live module");
  REFUSED(D.f_cuModuleGetFunction(&f, m, "add"), CUDA_ERROR_INVALID_HANDLE, "no live module");
  REFUSED(D.f_cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE, "image");
  rig_close(&r);
}

typedef struct doubled {
  float *x;
  float by;
} doubled;

static int multiply(void *arg) {
  doubled *d = arg;
  *d->x *= d->by;
  d->by = 0; /* of a copy */
  return 0;
}

static void other_doubles_enqueue(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUdeviceptr x = rig_device(1);
  doubled d = {(float *)(uintptr_t)x, 3};
  char large[1025] = {0};
  OK(rig_add(&r, r.a, x, 1, 2));
  OK(D.enqueue(r.a, "multiply", multiply, &d, sizeof d));
  d.by = 100;
  assert_true(rig_first(&r, x) == 6);
  REFUSED(D.enqueue(r.a, "multiply", multiply, large, sizeof large), CUDA_ERROR_INVALID_VALUE, "1025 bytes");
  REFUSED(D.enqueue(NULL, "multiply", multiply, &d, sizeof d), CUDA_ERROR_INVALID_HANDLE, "default stream");
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parameters_come_in_a_buffer),     cmocka_unit_test(limits_of_shape_hold),
    cmocka_unit_test(shared_memory_must_be_asked_for), cmocka_unit_test(handles_end_with_their_module),
    cmocka_unit_test(other_doubles_enqueue),
};
RIG_MAIN(tests)
