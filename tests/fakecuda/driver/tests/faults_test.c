/* Faults of kernels end the context. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakecuda/driver/tests/rig.h"

static CUresult wrong(const rig *r, CUdeviceptr x, long long offset) {
  CUfunction f;
  void *parameters[] = {&x, &offset};
  OK(D.f_cuModuleGetFunction(&f, r->module, "wrong"));
  return D.f_cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, r->a, parameters, NULL);
}

/* Every later call of the context returns the fault; calls that free do so all the same. */
static void everything_returns(const rig *r, CUdeviceptr x, CUresult fault) {
  CUdeviceptr y;
  CUstream s;
  IS(D.f_cuStreamSynchronize(r->b), fault);
  IS(D.f_cuCtxSynchronize(), fault);
  IS(D.f_cuMemAlloc(&y, 4), fault);
  IS(D.f_cuStreamCreate(&s, 0), fault);
  IS(rig_add(r, r->b, x, 1, 1), fault);
  IS(D.f_cuStreamQuery(r->a), fault);
  IS(D.f_cuMemFree(x), fault);
}

static void a_wrong_address_ends_the_context(void **state) {
  (void)state;
  rig r;
  static const struct {
    long long offset;
    const char *text;
  } cases[] = {{1024, "'wrong': an illegal address"},
               {1024, "byte 4096 of allocation 1 of 4000 bytes (cuMemAlloc_v2) on device 0"},
               {-1, "byte -4 of allocation 1 of 4000 bytes"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig_open(&r);
    CUdeviceptr x = rig_device(1000);
    OK(wrong(&r, x, 0));
    OK(D.f_cuStreamSynchronize(r.a));
    OK(wrong(&r, x, cases[i].offset));
    IS(D.f_cuStreamSynchronize(r.a), CUDA_ERROR_ILLEGAL_ADDRESS);
    LOGGED(cases[i].text);
    everything_returns(&r, x, CUDA_ERROR_ILLEGAL_ADDRESS);
    rig_close(&r);
  }
}

static void memory_that_is_no_longer_there(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUdeviceptr x = rig_device(1000), y = rig_device(1);
  OK(D.f_cuMemFree(x));
  OK(wrong(&r, x, 5));
  IS(D.f_cuStreamSynchronize(r.a), CUDA_ERROR_ILLEGAL_ADDRESS);
  LOGGED("byte 20 of allocation 1 of 4000 bytes (cuMemAlloc_v2) on device 0, which is freed");
  everything_returns(&r, y, CUDA_ERROR_ILLEGAL_ADDRESS);
  rig_close(&r);
}

static void another_devices_memory_faults(void **state) {
  (void)state;
  rig r;
  CUcontext other;
  rig_set("FAKECUDA_DEVICES", "2");
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  OK(D.f_cuDevicePrimaryCtxRetain(&other, 1));
  OK(D.f_cuCtxSetCurrent(other));
  CUdeviceptr y = rig_device(4);
  OK(D.f_cuCtxSetCurrent(r.context));
  OK(wrong(&r, y, 0));
  IS(D.f_cuStreamSynchronize(r.a), CUDA_ERROR_ILLEGAL_ADDRESS);
  LOGGED("in no allocation of device 0");
  OK(D.f_cuCtxSetCurrent(other)); /* the other context lives on */
  OK(D.f_cuCtxSynchronize());
  OK(D.f_cuMemFree(y));
  OK(D.f_cuDevicePrimaryCtxRelease(1));
  OK(D.f_cuCtxSetCurrent(r.context));
  everything_returns(&r, x, CUDA_ERROR_ILLEGAL_ADDRESS);
  rig_close(&r);
}

static void a_refused_launch_ends_the_context(void **state) {
  (void)state;
  rig r;
  CUfunction f;
  CUevent e;
  CUdeviceptr none = 0;
  void *parameters[] = {&none};
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  OK(D.f_cuEventCreate(&e, 0));
  OK(D.f_cuModuleGetFunction(&f, r.module, "refuse"));
  OK(D.f_cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, r.a, parameters, NULL));
  D.f_cuEventRecord(e, r.a);
  IS(D.f_cuEventSynchronize(e), CUDA_ERROR_ILLEGAL_ADDRESS);
  LOGGED("fault on device 0: 'refuse': ");
  everything_returns(&r, x, CUDA_ERROR_ILLEGAL_ADDRESS);
  IS(D.f_cuEventDestroy(e), CUDA_ERROR_ILLEGAL_ADDRESS);
  rig_close(&r);
  rig_open(&r); /* a new context is without fault */
  OK(D.f_cuCtxSynchronize());
  rig_close(&r);
}

static int give_back(void *arg) { return *(int *)arg; }

static void a_task_that_fails_ends_the_context(void **state) {
  (void)state;
  rig r;
  int seven = 7;
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  OK(D.enqueue(r.a, "matmul", give_back, &seven, sizeof seven));
  IS(D.f_cuStreamSynchronize(r.a), CUDA_ERROR_ILLEGAL_ADDRESS);
  LOGGED("'matmul': it returned 7");
  everything_returns(&r, x, CUDA_ERROR_ILLEGAL_ADDRESS);
  rig_close(&r);
}

/* The kernel's failure is asked for, so the log stays empty. */
static void a_kernel_faults_on_request(void **state) {
  (void)state;
  static const char *const asked[] = {"kernel:2", "kernel:2=719"};
  static const CUresult codes[] = {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED};
  for (int i = 0; i < 2; i++) {
    rig r;
    rig_set("FAKECUDA_FAIL", asked[i]);
    rig_open(&r);
    CUdeviceptr x = rig_device(4);
    OK(rig_add(&r, r.a, x, 4, 1));
    OK(D.f_cuStreamSynchronize(r.a));
    OK(rig_add(&r, r.a, x, 4, 1));
    IS(D.f_cuStreamSynchronize(r.a), codes[i]);
    everything_returns(&r, x, codes[i]);
    rig_close(&r);
  }
}

static void a_task_faults_on_request(void **state) {
  (void)state;
  rig r;
  int nothing = 0;
  rig_set("FAKECUDA_FAIL", "task:2");
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  OK(D.enqueue(r.a, "matmul", give_back, &nothing, sizeof nothing));
  OK(D.f_cuStreamSynchronize(r.a));
  OK(D.enqueue(r.a, "matmul", give_back, &nothing, sizeof nothing));
  IS(D.f_cuStreamSynchronize(r.a), CUDA_ERROR_ILLEGAL_ADDRESS);
  everything_returns(&r, x, CUDA_ERROR_ILLEGAL_ADDRESS);
  rig_close(&r);
}

/* A kernel that never ends, in a process of its own, since its context is never without work. The exit code:
 * 0, or the number of the check that failed. */
static int a_hanging_kernel(rig *r) {
  CUdeviceptr x = rig_device(4);
  struct timespec while_it_hangs = {0, 100000000};
  if (rig_add(r, r->a, x, 4, 1) != CUDA_SUCCESS || D.f_cuStreamSynchronize(r->a) != CUDA_SUCCESS) return 1;
  if (rig_add(r, r->a, x, 4, 1) != CUDA_SUCCESS) return 2;
  nanosleep(&while_it_hangs, NULL); /* in which it would end; on a slow machine it still hangs */
  if (D.f_cuStreamQuery(r->a) != CUDA_ERROR_NOT_READY) return 3;
  if (rig_add(r, r->b, x, 4, 1) != CUDA_SUCCESS || D.f_cuStreamSynchronize(r->b) != CUDA_SUCCESS) return 4;
  return D.f_cuStreamQuery(r->a) == CUDA_ERROR_NOT_READY ? 0 : 5;
}

static void a_kernel_hangs_on_request(void **state) {
  (void)state;
  int code = -1;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    rig r;
    alarm(60);
    rig_set("FAKECUDA_FAIL", "kernel:2=hang");
    rig_open(&r);
    _exit(a_hanging_kernel(&r));
  }
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_true(WIFEXITED(code));
  assert_int_equal(WEXITSTATUS(code), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wrong_address_ends_the_context),   cmocka_unit_test(memory_that_is_no_longer_there),
    cmocka_unit_test(another_devices_memory_faults),      cmocka_unit_test(a_refused_launch_ends_the_context),
    cmocka_unit_test(a_task_that_fails_ends_the_context), cmocka_unit_test(a_kernel_faults_on_request),
    cmocka_unit_test(a_task_faults_on_request),           cmocka_unit_test(a_kernel_hangs_on_request),
};
RIG_MAIN(tests)
