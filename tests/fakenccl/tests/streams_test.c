/* Captures and their replays, several streams and communicators, groups of several devices, delays. Run in
 * each order of the double of the driver (FAKECUDA_ORDER). */
#include <stdio.h>

#include "tests/fakenccl/tests/rig.h"

static ncclResult_t sum(const rig *r, float *x, size_t n) {
  return L.f_ncclAllReduce(x, x, n, ncclFloat32, ncclSum, r->comm, r->stream);
}

/* ---- captures ---- */

enum { REPLAYS = 50 };

static CUgraphExec capture(rig *r, float *x, float *y) {
  CUgraph graph;
  CUgraphExec exec;
  OK(L.f_cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(L.f_cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)y, (CUdeviceptr)(uintptr_t)x, 40, r->stream));
  OK(sum(r, y, 10));
  OK(L.f_ncclGroupStart());
  OK(L.f_ncclBroadcast(y, y, 5, ncclFloat32, r->ranks - 1, r->comm, r->stream));
  OK(L.f_ncclAllReduce(y, y, 5, ncclFloat32, ncclMax, r->comm, r->stream));
  OK(L.f_ncclGroupEnd());
  OK(L.f_cuStreamEndCapture(r->stream, &graph));
  OK(L.f_cuGraphInstantiateWithFlags(&exec, graph, 0));
  OK(L.f_cuGraphDestroy(graph));
  return exec;
}

/* Replays, and calls that are not captured between them. */
static void replay(rig *r) {
  float *x = rig_floats(r, 10), *y = rig_floats(r, 10), *z = rig_floats(r, 10);
  CUgraphExec exec = capture(r, x, y);
  float all = (float)(r->ranks * (r->ranks + 1) / 2);
  int replays = r->arg != NULL ? *(const int *)r->arg : REPLAYS;
  for (int i = 0; i < replays; i++) {
    OK(L.f_cuGraphLaunch(exec, r->stream));
    if (i % 7 == 0) OK(sum(r, z, 10));
    if (i == 0) CHECK(rig_is(r, z, 10, all));
    if (i % 10 == 0) CHECK(rig_is(r, y, 10, all));
  }
  OK(L.f_cuStreamSynchronize(r->stream));
  CHECK(rig_is(r, y, 10, all));
  OK(L.f_cuGraphExecDestroy(exec));
  rig_free(r, x), rig_free(r, y), rig_free(r, z);
}

static void replays_run_their_collectives(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n += 3) assert_int_equal(rig_run(1, n, replay, NULL), 0);
  assert_int_equal(rig_run(2, 2, replay, NULL), 0);
  QUIET();
}

static void delays_change_nothing(void **state) {
  (void)state;
  char delay[32], seed[16];
  int few = 10;
  for (int i = 0; i < 20; i++) {
    snprintf(delay, sizeof delay, "300:%d", i);
    snprintf(seed, sizeof seed, "%d", i);
    setenv("FAKENCCL_DELAY", delay, 1);
    if (i % 2 == 0) setenv("FAKENCCL_REORDER", seed, 1);
    assert_int_equal(rig_run(i % 4 == 3 ? 2 : 1, i % 4 == 3 ? 1 : 2, replay, &few), 0);
    unsetenv("FAKENCCL_REORDER");
  }
  unsetenv("FAKENCCL_DELAY");
  QUIET();
}

/* ---- several streams ---- */

static void group_two_streams(rig *r) {
  float *x = rig_floats(r, 10), *y = rig_floats(r, 10), *z = rig_floats(r, 10);
  CUstream other;
  OK(L.f_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(L.f_cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)y, (CUdeviceptr)(uintptr_t)z, 40, other));
  OK(L.f_ncclGroupStart());
  OK(sum(r, x, 10));
  OK(L.f_ncclAllReduce(y, y, 10, ncclFloat32, ncclSum, r->comm, other));
  OK(L.f_ncclGroupEnd());
  OK(L.f_cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)z, (CUdeviceptr)(uintptr_t)x, 40, other));
  OK(L.f_cuStreamSynchronize(other));
  CHECK(rig_is(r, x, 10, 3) && rig_is(r, y, 10, 3) && rig_is(r, z, 10, 3));
  OK(L.f_cuStreamDestroy(other));
  rig_free(r, x), rig_free(r, y), rig_free(r, z);
}

/* Without a group: the communicator's calls run in the order in which they were issued. */
static void use_two_streams(rig *r) {
  float *x = rig_floats(r, 10), *y = rig_floats(r, 20);
  CUstream other;
  OK(L.f_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 20; i++) {
    OK(L.f_ncclAllReduce(x, x, 10, ncclFloat32, ncclMax, r->comm, r->stream));
    OK(L.f_ncclAllReduce(y, y, 20, ncclFloat32, ncclMax, r->comm, other));
  }
  OK(L.f_cuStreamSynchronize(other));
  CHECK(rig_is(r, x, 10, 2) && rig_is(r, y, 20, 2));
  OK(L.f_cuStreamDestroy(other));
  rig_free(r, x), rig_free(r, y);
}

static void streams_of_a_communicator(void **state) {
  (void)state;
  for (int i = 0; i < 5; i++) assert_int_equal(rig_run(1, 2, group_two_streams, NULL), 0);
  assert_int_equal(rig_run(2, 1, use_two_streams, NULL), 0);
  assert_int_equal(rig_run(1, 2, use_two_streams, NULL), 0);
  QUIET();
}

/* ---- several communicators ---- */

typedef struct second {
  ncclUniqueId id;
  int first[2]; /* how often each communicator was the first that ended */
} second;

/* One rank waits for the second communicator's call before it makes the first one's. */
static void wait_crosswise(rig *r) {
  const second *s = r->arg;
  float *x = rig_floats(r, 10), *y = rig_floats(r, 10);
  CUstream other;
  ncclComm_t comm;
  OK(L.f_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(L.f_ncclCommInitRank(&comm, r->ranks, s->id, r->rank));
  if (r->rank == 0) OK(sum(r, x, 10));
  if (r->rank == 1) rig_pause_ms(20); /* both of rank 0 wait */
  OK(L.f_ncclAllReduce(y, y, 10, ncclFloat32, ncclSum, comm, other));
  if (r->rank == 1) OK(L.f_cuStreamSynchronize(other));
  if (r->rank == 1) OK(sum(r, x, 10));
  OK(L.f_cuStreamSynchronize(other));
  CHECK(rig_is(r, x, 10, 3) && rig_is(r, y, 10, 3));
  rig_destroy(r, comm);
  OK(L.f_cuStreamDestroy(other));
  rig_free(r, x), rig_free(r, y);
}

static void communicators_do_not_wait_for_each_other(void **state) {
  (void)state;
  second s = {.first = {0, 0}};
  assert_int_equal(L.f_ncclGetUniqueId(&s.id), ncclSuccess);
  assert_int_equal(rig_run(1, 2, wait_crosswise, &s), 0);
  assert_int_equal(L.f_ncclGetUniqueId(&s.id), ncclSuccess);
  assert_int_equal(rig_run(2, 1, wait_crosswise, &s), 0);
  QUIET();
}

static void race(rig *r) {
  second *s = r->arg;
  float *x = rig_floats(r, 10), *y = rig_floats(r, 10);
  CUstream other;
  ncclComm_t comm;
  OK(L.f_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(L.f_ncclCommInitRank(&comm, r->ranks, s->id, r->rank));
  for (int i = 0; i < 40; i++) {
    CUresult one = CUDA_ERROR_NOT_READY, two = CUDA_ERROR_NOT_READY;
    OK(sum(r, x, 10));
    OK(L.f_ncclAllReduce(y, y, 10, ncclFloat32, ncclSum, comm, other));
    while (one != CUDA_SUCCESS && two != CUDA_SUCCESS) {
      two = L.f_cuStreamQuery(other);
      one = L.f_cuStreamQuery(r->stream);
    }
    if (r->rank == 0 && one != two) s->first[two == CUDA_SUCCESS]++;
    OK(L.f_cuStreamSynchronize(r->stream));
    OK(L.f_cuStreamSynchronize(other));
  }
  rig_destroy(r, comm);
  OK(L.f_cuStreamDestroy(other));
  rig_free(r, x), rig_free(r, y);
}

static void communicators_end_in_any_order(void **state) {
  (void)state;
  second s = {.first = {0, 0}};
  assert_int_equal(L.f_ncclGetUniqueId(&s.id), ncclSuccess);
  rig_set("FAKENCCL_REORDER", "5");
  assert_int_equal(rig_run(1, 2, race, &s), 0);
  if (s.first[0] == 0 || s.first[1] == 0) fail_msg("first: %d, second: %d", s.first[0], s.first[1]);
  QUIET();
}

/* ---- the driver's lock: a rank that waits must not keep another from enqueuing ---- */

static void fill_the_stream(rig *r) {
  float *x = rig_floats(r, 10);
  if (r->rank == 1) rig_pause_ms(30);
  for (int i = 0; i < 1200; i++) OK(L.f_ncclAllReduce(x, x, 1, ncclFloat32, ncclMax, r->comm, r->stream));
  OK(L.f_cuStreamSynchronize(r->stream));
  rig_free(r, x);
}

static void free_what_others_wait_for(rig *r) {
  float *x = rig_floats(r, 10), *y = rig_floats(r, 10);
  CUstream other;
  OK(L.f_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  if (r->rank == 1) rig_pause_ms(30);
  OK(sum(r, x, 10));
  OK(L.f_ncclAllReduce(y, y, 10, ncclFloat32, ncclSum, r->comm, other));
  rig_free(r, y); /* waits for the device */
  OK(L.f_cuStreamDestroy(other));
  CHECK(rig_is(r, x, 10, 3));
  rig_free(r, x);
}

static void waiting_locks_nobody_out(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, fill_the_stream, NULL), 0);
  assert_int_equal(rig_run(1, 2, free_what_others_wait_for, NULL), 0);
  QUIET();
}

/* ---- all devices from one thread ---- */

static void drive_all(rig *r) {
  enum { N = 3 };
  static const int devices[N] = {2, 0, 1};
  ncclComm_t comms[N];
  CUcontext contexts[N];
  CUstream streams[N];
  float *x[N];
  OK(L.f_ncclCommInitAll(comms, N, devices));
  for (int i = 0; i < N; i++) {
    rig on = {.rank = i};
    OK(L.f_cuDevicePrimaryCtxRetain(&contexts[i], devices[i]));
    OK(L.f_cuCtxSetCurrent(contexts[i]));
    OK(L.f_cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    on.stream = streams[i];
    x[i] = rig_floats(&on, 10);
  }
  OK(L.f_cuCtxSetCurrent(r->context));
  OK(L.f_ncclGroupStart());
  for (int i = 0; i < N; i++)
    OK(L.f_ncclAllReduce(x[i], x[i], 10, ncclFloat32, ncclSum, comms[i], streams[i]));
  OK(L.f_ncclGroupEnd());
  for (int i = 0; i < N; i++) {
    rig on = {.rank = i, .stream = streams[i]};
    int rank, device;
    OK(L.f_cuCtxSetCurrent(contexts[i]));
    CHECK(rig_is(&on, x[i], 10, 6));
    OK(L.f_ncclCommUserRank(comms[i], &rank));
    OK(L.f_ncclCommCuDevice(comms[i], &device));
    CHECK(rank == i && device == devices[i]);
    OK(L.f_ncclCommDestroy(comms[i]));
    OK(L.f_cuCtxSetCurrent(contexts[i])); /* the last one leaves another device current */
    rig_free(&on, x[i]);
    OK(L.f_cuStreamDestroy(streams[i]));
    r->failures += on.failures;
  }
  for (int i = 0; i < N; i++) OK(L.f_cuDevicePrimaryCtxRelease(devices[i]));
  OK(L.f_cuCtxSetCurrent(r->context));
}

static void one_thread_drives_all_devices(void **state) {
  (void)state;
  assert_int_equal(rig_run_bare(1, 1, drive_all, NULL), 0);
  QUIET();
}

static const struct CMUnitTest tests[] = {
    RIG_TEST(replays_run_their_collectives),  RIG_TEST(delays_change_nothing),
    RIG_TEST(streams_of_a_communicator),      RIG_TEST(communicators_do_not_wait_for_each_other),
    RIG_TEST(communicators_end_in_any_order), RIG_TEST(waiting_locks_nobody_out),
    RIG_TEST(one_thread_drives_all_devices),
};
RIG_MAIN(tests)
