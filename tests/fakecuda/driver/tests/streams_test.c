/* Streams and events: late, in any order that the events allow. */
#include <pthread.h>
#include <stdio.h>
#include <stdio.h>

#include "tests/fakecuda/driver/tests/rig.h"

static const char *const orders[] = {"eager", "lazy", "random"};

static CUevent event(unsigned flags) {
  CUevent e;
  OK(D.f_cuEventCreate(&e, flags));
  return e;
}

/* b adds after a, in each order. */
static void streams_obey_events(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    rig r;
    rig_set("FAKECUDA_ORDER", orders[i]);
    rig_open(&r);
    CUdeviceptr x = rig_device(4), y = rig_device(4);
    CUevent e = event(CU_EVENT_DISABLE_TIMING);
    OK(rig_add(&r, r.a, x, 4, 3));
    OK(D.f_cuEventRecord(e, r.a));
    OK(D.f_cuStreamWaitEvent(r.b, e, 0));
    OK(D.f_cuMemcpyDtoDAsync(y, x, 16, r.b));
    OK(D.f_cuStreamSynchronize(r.b));
    OK(D.f_cuEventQuery(e));
    assert_true(rig_first(&r, y) == 3);
    OK(D.f_cuEventDestroy(e));
    OK(D.f_cuMemFree(x));
    OK(D.f_cuMemFree(y));
    rig_close(&r);
  }
}

/* Without the wait the copy overtakes the kernel for some seed. */
static void a_missing_wait_shows_in_some_order(void **state) {
  (void)state;
  int early = 0;
  for (int seed = 0; seed < 40 && early == 0; seed++) {
    rig r;
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    rig_set("FAKECUDA_ORDER", "random");
    rig_set("FAKECUDA_SEED", text);
    rig_open(&r);
    CUdeviceptr x = rig_device(4), y = rig_device(4);
    for (int i = 0; i < 8; i++) OK(rig_add(&r, r.a, x, 4, 1));
    OK(D.f_cuMemcpyDtoDAsync(y, x, 16, r.b));
    early = rig_first(&r, y) < 8;
    OK(D.f_cuMemFree(x));
    OK(D.f_cuMemFree(y));
    rig_close(&r);
  }
  assert_true(early);
}

static void work_is_late(void **state) {
  (void)state;
  rig r;
  float ms = -1;
  rig_set("FAKECUDA_ORDER", "lazy");
  rig_open(&r);
  CUevent from = event(0), to = event(0);
  CUdeviceptr x = rig_device(4);
  OK(D.f_cuEventQuery(from)); /* never recorded */
  OK(D.f_cuEventRecord(from, r.a));
  OK(rig_add(&r, r.a, x, 4, 3));
  OK(D.f_cuEventRecord(to, r.a));
  IS(D.f_cuEventElapsedTime(&ms, from, to), CUDA_ERROR_NOT_READY);
  IS(D.f_cuStreamQuery(r.a), CUDA_ERROR_NOT_READY);
  OK(D.f_cuEventSynchronize(to));
  OK(D.f_cuStreamQuery(r.a));
  OK(D.f_cuEventElapsedTime(&ms, from, to));
  assert_true(ms >= 0 && ms < 60000);
  OK(D.f_cuEventDestroy(from));
  OK(D.f_cuEventDestroy(to));
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  rig r;
  CUstream s;
  float ms;
  CUcontext context;
  rig_open(&r);
  CUevent untimed = event(CU_EVENT_DISABLE_TIMING), timed = event(0), gone = event(0);
  OK(D.f_cuEventDestroy(gone));
  REFUSED(D.f_cuStreamCreate(&s, 7), CUDA_ERROR_INVALID_VALUE, "cuStreamCreate: flags 0x7");
  REFUSED(D.f_cuEventCreate(&gone, 0x40), CUDA_ERROR_INVALID_VALUE, "cuEventCreate: flags");
  REFUSED(D.f_cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_HANDLE, "default stream");
  REFUSED(D.f_cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE, "default stream");
  REFUSED(D.f_cuEventRecord(gone, r.a), CUDA_ERROR_INVALID_HANDLE, "no live event");
  REFUSED(D.f_cuEventRecord((CUevent)(void *)r.a, r.a), CUDA_ERROR_INVALID_HANDLE, "no live event");
  REFUSED(D.f_cuStreamWaitEvent(r.a, timed, 5), CUDA_ERROR_INVALID_VALUE, "flags");
  OK(D.f_cuEventRecord(untimed, r.a));
  REFUSED(D.f_cuEventElapsedTime(&ms, untimed, timed), CUDA_ERROR_INVALID_HANDLE, "measures no time");
  REFUSED(D.f_cuEventElapsedTime(&ms, timed, timed), CUDA_ERROR_INVALID_HANDLE, "never recorded");
  OK(D.f_cuStreamCreateWithPriority(&s, 0, -5));
  OK(D.f_cuStreamGetCtx(s, &context));
  assert_ptr_equal(context, r.context);
  OK(D.f_cuStreamDestroy(s));
  REFUSED(D.f_cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE, "no live stream");
  OK(D.f_cuEventDestroy(untimed));
  OK(D.f_cuEventDestroy(timed));
  rig_close(&r);
}

static void devices_keep_apart(void **state) {
  (void)state;
  rig r;
  CUcontext other;
  CUstream s;
  CUevent e;
  CUdeviceptr x, y;
  rig_set("FAKECUDA_DEVICES", "2");
  rig_open(&r);
  x = rig_device(4);
  OK(D.f_cuDevicePrimaryCtxRetain(&other, 1));
  OK(D.f_cuCtxPushCurrent(other));
  OK(D.f_cuStreamCreate(&s, 0));
  OK(D.f_cuEventCreate(&e, 0));
  y = rig_device(4);
  REFUSED(D.f_cuEventRecord(e, r.a), CUDA_ERROR_INVALID_HANDLE, "current context is of device 1");
  REFUSED(D.f_cuMemsetD8Async(x, 0, 4, s), CUDA_ERROR_INVALID_VALUE, "in no allocation of device 1");
  OK(D.f_cuCtxPopCurrent(NULL));
  REFUSED(D.f_cuEventRecord(e, r.a), CUDA_ERROR_INVALID_HANDLE, "event 1 is of device 1");
  REFUSED(D.f_cuStreamWaitEvent(r.a, e, 0), CUDA_ERROR_NOT_SUPPORTED, "lets no stream of device 0");
  REFUSED(rig_add(&r, s, x, 4, 1), CUDA_ERROR_INVALID_HANDLE, "is of device 1");
  OK(D.f_cuMemFree(x));
  OK(D.f_cuCtxSetCurrent(other));
  OK(D.f_cuStreamDestroy(s));
  OK(D.f_cuEventDestroy(e));
  OK(D.f_cuMemFree(y));
  OK(D.f_cuDevicePrimaryCtxRelease(1));
  OK(D.f_cuCtxSetCurrent(r.context));
  rig_close(&r);
}

/* ---- threads ---- */

typedef struct worker {
  const rig *r;
  float result;
} worker;

static void *work(void *arg) {
  worker *w = arg;
  CUstream s;
  float *host;
  CUevent e;
  void *p;
  CUdeviceptr x;
  bool ok = D.f_cuCtxSetCurrent(w->r->context) == 0 && D.f_cuStreamCreate(&s, 0) == 0 &&
            D.f_cuEventCreate(&e, 0) == 0 && D.f_cuMemAlloc(&x, 64) == 0 &&
            D.f_cuMemHostAlloc(&p, 64, 0) == 0;
  host = p;
  ok = ok && D.f_cuMemsetD32Async(x, 0, 16, s) == 0;
  for (int i = 0; i < 50 && ok; i++)
    ok = rig_add(w->r, s, x, 16, 1) == 0 && D.f_cuEventRecord(e, s) == 0 && D.f_cuEventSynchronize(e) == 0;
  ok = ok && D.f_cuMemcpyDtoHAsync(host, x, 64, s) == 0 && D.f_cuStreamSynchronize(s) == 0;
  w->result = ok ? host[15] : -1;
  D.f_cuMemFree(x), D.f_cuMemFreeHost(host), D.f_cuEventDestroy(e), D.f_cuStreamDestroy(s);
  return NULL;
}

static void threads_share_a_context(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  pthread_t threads[4];
  worker workers[4];
  for (int i = 0; i < 4; i++) {
    workers[i] = (worker){&r, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    assert_true(workers[i].result == 50);
  }
  rig_close(&r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(streams_obey_events), cmocka_unit_test(a_missing_wait_shows_in_some_order),
    cmocka_unit_test(work_is_late),        cmocka_unit_test(wrong_arguments_are_refused),
    cmocka_unit_test(devices_keep_apart),  cmocka_unit_test(threads_share_a_context),
};
RIG_MAIN(tests)
