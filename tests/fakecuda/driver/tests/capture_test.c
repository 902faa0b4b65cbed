/* Captures with CUDA's rules, and replays of graphs. */
#include <pthread.h>

#include "tests/fakecuda/driver/tests/rig.h"

static const CUstreamCaptureMode GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL,
                                 RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED;

static CUevent event(void) {
  CUevent e;
  OK(D.f_cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  return e;
}

static CUstreamCaptureStatus status_of(CUstream s) {
  CUstreamCaptureStatus status;
  OK(D.f_cuStreamIsCapturing(s, &status));
  return status;
}

/* The end of a capture that an earlier call has made invalid. */
static void ends_invalid(CUstream s) {
  CUgraph graph = (CUgraph)(void *)s;
  assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  IS(D.f_cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  assert_null(graph);
  assert_int_equal(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
}

/* ---- legal work ---- */

static void a_graph_replays_what_was_recorded(void **state) {
  (void)state;
  static const char *const orders[] = {"eager", "lazy", "random"};
  for (int o = 0; o < 3; o++) {
    rig r;
    CUgraph graph;
    CUgraphExec exec, second;
    CUgraphNode nodes[8];
    size_t n = 0;
    rig_set("FAKECUDA_ORDER", orders[o]);
    rig_open(&r);
    CUevent fork = event(), join = event();
    CUdeviceptr x = rig_device(4), y = rig_device(4);
    float value = 3;
    int count = 4;
    void *parameters[] = {&x, &count, &value};
    OK(D.f_cuStreamBeginCapture(r.a, GLOBAL));
    OK(D.f_cuLaunchKernel(r.add, 1, 1, 1, 1, 1, 1, 0, r.a, parameters, NULL));
    OK(D.f_cuEventRecord(fork, r.a));
    OK(D.f_cuStreamWaitEvent(r.b, fork, 0));
    assert_int_equal(status_of(r.b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(D.f_cuMemcpyDtoDAsync(y, x, 16, r.b));
    OK(D.f_cuEventRecord(join, r.b));
    OK(D.f_cuStreamWaitEvent(r.a, join, 0));
    OK(rig_add(&r, r.a, y, 4, 100));
    OK(D.f_cuStreamEndCapture(r.a, &graph));
    assert_int_equal(status_of(r.b), CU_STREAM_CAPTURE_STATUS_NONE);
    value = 1000; /* of no effect */
    OK(D.f_cuGraphGetNodes(graph, NULL, &n));
    assert_int_equal(n, 3);
    n = 8;
    OK(D.f_cuGraphGetNodes(graph, nodes, &n));
    assert_true(n == 3 && nodes[0] != nodes[1] && nodes[3] == NULL);
    OK(D.f_cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(D.f_cuGraphInstantiateWithFlags(&second, graph, 0));
    OK(D.f_cuGraphDestroy(graph));
    assert_true(rig_first(&r, x) == 0);
    for (int i = 0; i < 4; i++) OK(D.f_cuGraphLaunch(exec, r.a));
    OK(D.f_cuStreamSynchronize(r.a));
    OK(D.f_cuGraphLaunch(exec, r.b));
    OK(D.f_cuGraphLaunch(second, r.b));
    OK(D.f_cuStreamSynchronize(r.b));
    assert_true(rig_first(&r, x) == 18 && rig_first(&r, y) == 118);
    OK(D.f_cuGraphLaunch(exec, r.b));
    OK(D.f_cuGraphExecDestroy(exec)); /* the launch runs to its end */
    OK(D.f_cuGraphExecDestroy(second));
    assert_true(rig_first(&r, x) == 21);
    REFUSED(D.f_cuGraphLaunch(exec, r.a), CUDA_ERROR_INVALID_HANDLE, "no live executable graph");
    REFUSED(D.f_cuGraphDestroy(graph), CUDA_ERROR_INVALID_HANDLE, "no live graph");
    OK(D.f_cuEventDestroy(fork));
    OK(D.f_cuEventDestroy(join));
    OK(D.f_cuMemFree(x));
    OK(D.f_cuMemFree(y));
    rig_close(&r);
  }
}

static void other_streams_go_on(void **state) {
  (void)state;
  rig r;
  CUgraph one, two;
  rig_open(&r);
  CUdeviceptr x = rig_device(4), y = rig_device(4);
  CUstream c;
  OK(D.f_cuStreamCreate(&c, 0));
  OK(D.f_cuStreamBeginCapture(r.a, RELAXED));
  OK(D.f_cuStreamBeginCapture(r.b, RELAXED));
  OK(rig_add(&r, r.a, x, 4, 1));
  OK(rig_add(&r, c, y, 4, 5));
  OK(rig_add(&r, r.b, x, 4, 10));
  OK(D.f_cuStreamSynchronize(c));
  CUdeviceptr z;
  OK(D.f_cuMemAlloc(&z, 16)); /* relaxed */
  OK(D.f_cuStreamEndCapture(r.a, &one));
  OK(D.f_cuStreamEndCapture(r.b, &two));
  assert_true(rig_first(&r, y) == 5 && rig_first(&r, x) == 0);
  OK(D.f_cuGraphDestroy(one));
  OK(D.f_cuGraphDestroy(two));
  OK(D.f_cuStreamDestroy(c));
  OK(D.f_cuMemFree(x));
  OK(D.f_cuMemFree(y));
  OK(D.f_cuMemFree(z));
  rig_close(&r);
}

/* ---- illegal calls ---- */

static CUresult do_alloc(const rig *r, CUdeviceptr x, CUevent e) {
  CUdeviceptr y;
  (void)r, (void)x, (void)e;
  return D.f_cuMemAlloc(&y, 4);
}
static CUresult do_free(const rig *r, CUdeviceptr x, CUevent e) { return (void)r, (void)e, D.f_cuMemFree(x); }
static CUresult do_host_alloc(const rig *r, CUdeviceptr x, CUevent e) {
  void *p;
  return (void)r, (void)x, (void)e, D.f_cuMemHostAlloc(&p, 4, 0);
}
static CUresult do_load(const rig *r, CUdeviceptr x, CUevent e) {
  CUmodule m;
  return (void)r, (void)x, (void)e, D.f_cuModuleLoadData(&m, rig_image());
}
static CUresult do_wait(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)x, (void)e, D.f_cuStreamSynchronize(r->a);
}
static CUresult do_query(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)x, (void)e, D.f_cuStreamQuery(r->a);
}
static CUresult do_wait_all(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)r, (void)x, (void)e, D.f_cuCtxSynchronize();
}
static CUresult do_wait_event(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)r, (void)x, D.f_cuEventSynchronize(e);
}
static CUresult do_query_event(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)r, (void)x, D.f_cuEventQuery(e);
}
static CUresult do_legacy(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)e, rig_add(r, NULL, x, 1, 1);
}
static CUresult do_destroy(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)x, (void)e, D.f_cuStreamDestroy(r->a);
}
static CUresult do_pageable(const rig *r, CUdeviceptr x, CUevent e) {
  return (void)e, D.f_cuMemcpyHtoDAsync(x, &x, 4, r->a);
}

static const struct illegal {
  CUresult (*call)(const rig *r, CUdeviceptr x, CUevent e);
  CUstreamCaptureMode mode;
  CUresult code;
  const char *text;
} illegal[] = {
    {do_alloc, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuMemAlloc_v2: not permitted while stream 1"},
    {do_alloc, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuMemAlloc_v2: not"},
    {do_free, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuMemFree_v2: not permitted"},
    {do_host_alloc, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuMemHostAlloc: not permitted"},
    {do_load, CU_STREAM_CAPTURE_MODE_GLOBAL, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuModuleLoadData: not permitted"},
    {do_wait, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuStreamSynchronize: not permitted on a stream"},
    {do_query, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuStreamQuery: not permitted on a stream"},
    {do_wait_all, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuCtxSynchronize: not permitted"},
    {do_wait_event, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_CAPTURED_EVENT,
     "cuEventSynchronize: the last record of event 1"},
    {do_query_event, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_CAPTURED_EVENT,
     "cuEventQuery: the last record of event 1"},
    {do_legacy, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
     "cuLaunchKernel: not permitted"},
    {do_destroy, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "cuStreamDestroy_v2: not permitted"},
    {do_pageable, CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "must be pinned"},
};

static void what_is_illegal_ends_the_capture(void **state) {
  (void)state;
  rig r;
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  CUevent e = event();
  for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++) {
    OK(D.f_cuStreamBeginCapture(r.a, illegal[i].mode));
    OK(rig_add(&r, r.a, x, 4, 1));
    OK(D.f_cuEventRecord(e, r.a));
    IS(illegal[i].call(&r, x, e), illegal[i].code);
    LOGGED(illegal[i].text);
    REFUSED(rig_add(&r, r.a, x, 4, 1), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "is invalid");
    ends_invalid(r.a);
  }
  IS(D.f_cuEventSynchronize(e), CUDA_ERROR_CAPTURED_EVENT); /* also after the end */
  LOGGED("is in a capture");
  OK(D.f_cuEventRecord(e, r.a));
  OK(D.f_cuEventSynchronize(e));
  assert_true(rig_first(&r, x) == 0);
  OK(D.f_cuEventDestroy(e));
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static void streams_must_be_joined(void **state) {
  (void)state;
  rig r;
  CUgraph graph;
  rig_open(&r);
  CUdeviceptr x = rig_device(4);
  CUevent fork = event();
  OK(D.f_cuStreamBeginCapture(r.a, GLOBAL));
  OK(D.f_cuEventRecord(fork, r.a));
  OK(D.f_cuStreamWaitEvent(r.b, fork, 0));
  OK(rig_add(&r, r.b, x, 4, 1));
  REFUSED(D.f_cuStreamEndCapture(r.a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "has not waited");
  assert_null(graph);
  assert_int_equal(status_of(r.a), CU_STREAM_CAPTURE_STATUS_NONE);
  assert_int_equal(status_of(r.b), CU_STREAM_CAPTURE_STATUS_NONE);
  OK(D.f_cuEventDestroy(fork));
  OK(D.f_cuMemFree(x));
  rig_close(&r);
}

static void captures_are_isolated(void **state) {
  (void)state;
  rig r;
  CUgraph graph;
  rig_open(&r);
  CUevent outside = event(), inside = event(), never = event();
  OK(D.f_cuEventRecord(outside, r.b));
  OK(D.f_cuStreamBeginCapture(r.a, RELAXED));
  REFUSED(D.f_cuStreamWaitEvent(r.a, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
          "not recorded in this");
  ends_invalid(r.a);
  OK(D.f_cuStreamBeginCapture(r.a, RELAXED));
  REFUSED(D.f_cuStreamWaitEvent(r.a, never, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "not recorded in this");
  ends_invalid(r.a);
  OK(D.f_cuStreamBeginCapture(r.a, RELAXED));
  OK(D.f_cuEventRecord(inside, r.a));
  OK(D.f_cuStreamEndCapture(r.a, &graph));
  OK(D.f_cuGraphDestroy(graph));
  REFUSED(D.f_cuStreamWaitEvent(r.b, inside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "that has ended");
  OK(D.f_cuStreamBeginCapture(r.a, RELAXED));
  OK(D.f_cuStreamBeginCapture(r.b, RELAXED));
  OK(D.f_cuEventRecord(inside, r.a));
  REFUSED(D.f_cuStreamWaitEvent(r.b, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE, "would become one");
  ends_invalid(r.a);
  ends_invalid(r.b);
  OK(D.f_cuEventDestroy(outside));
  OK(D.f_cuEventDestroy(inside));
  OK(D.f_cuEventDestroy(never));
  rig_close(&r);
}

static void begin_and_end_must_match(void **state) {
  (void)state;
  rig r;
  CUgraph graph;
  CUevent fork;
  rig_open(&r);
  fork = event();
  REFUSED(D.f_cuStreamEndCapture(r.a, &graph), CUDA_ERROR_ILLEGAL_STATE, "does not capture");
  REFUSED(D.f_cuStreamBeginCapture(r.a, (CUstreamCaptureMode)9), CUDA_ERROR_INVALID_VALUE, "no such mode");
  OK(D.f_cuStreamBeginCapture(r.a, RELAXED));
  REFUSED(D.f_cuStreamBeginCapture(r.a, RELAXED), CUDA_ERROR_ILLEGAL_STATE, "captures already");
  OK(D.f_cuEventRecord(fork, r.a));
  OK(D.f_cuStreamWaitEvent(r.b, fork, 0));
  REFUSED(D.f_cuStreamEndCapture(r.b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
          "did not begin on stream 2");
  ends_invalid(r.a);
  OK(D.f_cuEventDestroy(fork));
  rig_close(&r);
}

/* ---- threads ---- */

typedef struct elsewhere {
  rig *r;
  CUresult global, relaxed, end;
} elsewhere;

static void *another_thread(void *arg) {
  elsewhere *e = arg;
  CUdeviceptr x;
  CUgraph graph;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  D.f_cuCtxSetCurrent(e->r->context);
  e->end = D.f_cuStreamEndCapture(e->r->a, &graph);
  D.f_cuThreadExchangeStreamCaptureMode(&mode);
  e->relaxed = D.f_cuMemAlloc(&x, 4);
  if (e->relaxed == CUDA_SUCCESS) e->relaxed = D.f_cuMemFree(x);
  D.f_cuThreadExchangeStreamCaptureMode(&mode);
  e->global = D.f_cuMemAlloc(&x, 4);
  if (e->global == CUDA_SUCCESS) D.f_cuMemFree(x);
  return NULL;
}

static void modes_reach_over_threads(void **state) {
  (void)state;
  static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                              CU_STREAM_CAPTURE_MODE_THREAD_LOCAL};
  for (int i = 0; i < 2; i++) {
    rig r;
    pthread_t thread;
    CUgraph graph;
    rig_open(&r);
    elsewhere e = {.r = &r};
    OK(D.f_cuStreamBeginCapture(r.a, modes[i]));
    pthread_create(&thread, NULL, another_thread, &e);
    pthread_join(thread, NULL);
    IS(e.end, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    IS(e.relaxed, CUDA_SUCCESS);
    IS(e.global, i == 0 ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
    LOGGED("by another thread");
    if (i == 0) {
      ends_invalid(r.a);
    } else {
      OK(D.f_cuStreamEndCapture(r.a, &graph));
      OK(D.f_cuGraphDestroy(graph));
    }
    rig_close(&r);
  }
}

/* ---- lifetimes ---- */

static void a_graph_that_outlives_its_parts_faults(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    rig r;
    CUgraph graph;
    CUgraphExec exec;
    CUmodule m;
    CUfunction f;
    rig_open(&r);
    CUdeviceptr x = rig_device(4), none = 0;
    void *parameters[] = {&none};
    OK(D.f_cuModuleLoadData(&m, rig_image()));
    OK(D.f_cuModuleGetFunction(&f, m, "shared"));
    OK(D.f_cuStreamBeginCapture(r.a, GLOBAL));
    if (i == 0) OK(D.f_cuMemsetD8Async(x, 0, 16, r.a));
    OK(D.f_cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, r.a, parameters, NULL));
    OK(D.f_cuStreamEndCapture(r.a, &graph));
    OK(D.f_cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(D.f_cuMemFree(x));
    if (i == 1) OK(D.f_cuModuleUnload(m));
    OK(D.f_cuGraphLaunch(exec, r.b));
    IS(D.f_cuStreamSynchronize(r.b), CUDA_ERROR_ILLEGAL_ADDRESS);
    LOGGED(i == 0 ? "which is freed" : "'shared': its module has been unloaded");
    D.f_cuGraphExecDestroy(exec);
    D.f_cuGraphDestroy(graph);
    if (i == 0) D.f_cuModuleUnload(m);
    rig_close(&r);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_graph_replays_what_was_recorded),
    cmocka_unit_test(other_streams_go_on),
    cmocka_unit_test(what_is_illegal_ends_the_capture),
    cmocka_unit_test(streams_must_be_joined),
    cmocka_unit_test(captures_are_isolated),
    cmocka_unit_test(begin_and_end_must_match),
    cmocka_unit_test(modes_reach_over_threads),
    cmocka_unit_test(a_graph_that_outlives_its_parts_faults),
};
RIG_MAIN(tests)
