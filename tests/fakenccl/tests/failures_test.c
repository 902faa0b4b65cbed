/* Ranks that are absent, dead, late, or told to fail: the others wait until they abort. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/fakenccl/tests/rig.h"
#include "tests/support/await.h"

static ncclResult_t sum(const rig *r, float *x, size_t n) {
  return L.f_ncclAllReduce(x, x, n, ncclFloat32, ncclSum, r->comm, r->stream);
}

/* After the abort the work ends, with a result that is undefined. */
static void give_up(rig *r, const float *x) {
  float first = 0;
  CHECK(rig_stream_is_busy(r));
  rig_abort(r, r->comm);
  r->comm = NULL;
  OK(L.f_cuStreamSynchronize(r->stream));
  rig_get(r, &first, x, sizeof first);
  CHECK(isnan(first));
}

/* ---- absent ranks ---- */

static void stop_coming(rig *r) {
  float *x = rig_floats(r, 10);
  for (int i = 0; i < 2; i++) OK(sum(r, x, 10));
  OK(L.f_cuStreamSynchronize(r->stream));
  CHECK(rig_is(r, x, 10, r->ranks == 2 ? 6 : 40));
  if (r->rank != 1 || r->arg == NULL) OK(sum(r, x, 10));
  if (r->rank != 1 || r->arg == NULL) {
    rig_pause_ms(60);
    CODE(rig_status(r), ncclSuccess);
    give_up(r, x);
  }
  rig_free(r, x);
}

static void an_absent_rank_is_waited_for(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, stop_coming, stop_coming), 0);
  QUIET();
}

static void a_stalled_rank_never_comes(void **state) {
  (void)state;
  rig_set("FAKENCCL_STALL", "1:3");
  assert_int_equal(rig_run(1, 2, stop_coming, NULL), 0);
  assert_int_equal(rig_run(2, 2, stop_coming, NULL), 0);
  QUIET();
}

static void watch_another_abort(rig *r) {
  float *x = rig_floats(r, 10);
  if (r->rank == 0) {
    rig_abort(r, r->comm);
    r->comm = NULL;
  } else {
    OK(sum(r, x, 10));
    CHECK(rig_reaches(r, ncclRemoteError));
    CHECK(strstr(L.f_ncclGetLastError(r->comm), "rank 0 has aborted") != NULL);
    CODE(sum(r, x, 10), ncclRemoteError);
    give_up(r, x);
  }
  rig_free(r, x);
}

static void an_abort_is_seen_by_others(void **state) {
  (void)state;
  rig_set("FAKENCCL_TELL", "1");
  assert_int_equal(rig_run(1, 2, watch_another_abort, NULL), 0);
  assert_int_equal(rig_run(2, 1, watch_another_abort, NULL), 0);
  QUIET();
}

/* ---- dead ranks ---- */

/* Of the one that was killed, or of another one that has aborted for this reason. */
static bool tells_of_an_end(const char *text) {
  return (strstr(text, "process") != NULL && strstr(text, "has ended") != NULL) ||
         strstr(text, "has aborted") != NULL;
}

static void lose_a_rank(rig *r) {
  bool silent = r->arg != NULL;
  float *x = rig_floats(r, 10);
  for (int i = 0; i < 2; i++) OK(sum(r, x, 10));
  OK(L.f_cuStreamSynchronize(r->stream));
  OK(sum(r, x, 10)); /* rank 2 is killed as it comes to this one */
  if (silent) rig_pause_ms(100);
  if (silent)
    CODE(rig_status(r), ncclSuccess);
  else if (CHECK(rig_reaches(r, ncclRemoteError)))
    CHECK(tells_of_an_end(L.f_ncclGetLastError(r->comm)));
  give_up(r, x);
  rig_free(r, x);
}

static void a_killed_process_ends_nothing_but_itself(void **state) {
  (void)state;
  rig_set("FAKENCCL_KILL", "2:3");
  assert_int_equal(rig_run(4, 1, lose_a_rank, lose_a_rank), 0);
  rig_set("FAKENCCL_TELL", "1");
  assert_int_equal(rig_run(4, 1, lose_a_rank, NULL), 0);
  assert_int_equal(rig_run(2, 2, lose_a_rank, NULL), 0);
  QUIET();
  assert_int_not_equal(access("/dev/shm/fakenccl", F_OK), 0);
}

/* ---- versions ---- */

static void start_without_blocking(rig *r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  CODE(L.f_ncclCommInitRankConfig(&r->comm, r->ranks, r->id, r->rank, &config), ncclInProgress);
  CODE(rig_status(r), ncclSuccess);
}

static void abort_in_a_window(rig *r) {
  bool ends = r->arg == NULL;
  ncclWindow_t window;
  void *at;
  OK(L.f_ncclMemAlloc(&at, 8192));
  OK(L.f_ncclCommWindowRegister(r->comm, at, 8192, &window, NCCL_WIN_COLL_SYMMETRIC));
  if (r->rank == 0) OK(sum(r, at, 10));
  rig_pause_ms(20);
  rig_abort(r, r->comm);
  r->comm = NULL;
  if (ends) OK(L.f_cuStreamSynchronize(r->stream));
  if (ends) OK(L.f_ncclMemFree(at));
  if (ends) return;
  rig_pause_ms(50);
  CHECK(rig_stream_is_busy(r) == (r->rank == 0));
  _exit(r->failures > 0);
}

static void kernels_of_windows_hear_no_abort(void **state) {
  (void)state;
  rig_set("FAKENCCL_VERSION", "22907");
  assert_int_equal(rig_run(2, 1, abort_in_a_window, NULL), 0);
  QUIET();
  rig_set("FAKENCCL_VERSION", "22809");
  assert_int_equal(rig_run(2, 1, abort_in_a_window, abort_in_a_window), 0);
}

typedef struct abortion {
  rig *r;
  _Atomic(pid_t) caller; /* 0: none; a thread that is about to wait in a call, during which the abort comes */
  ncclResult_t result;
} abortion;

static void *abort_elsewhere(void *arg) {
  abortion *a = arg;
  pid_t caller = atomic_load(&a->caller);
  AWAIT(caller == 0 || await_state_of(caller) == 'S');
  L.f_cuCtxSetCurrent(a->r->context);
  a->result = L.f_ncclCommAbort(a->r->comm);
  return NULL;
}

static atomic_bool aborted;

/* 2.22 waits in the call for the other rank's first call, which never comes. */
static void call_alone(rig *r) {
  float *x = rig_floats(r, 10);
  pthread_t thread;
  abortion a = {.r = r};
  start_without_blocking(r);
  if (r->rank == 1) {
    AWAIT(atomic_load(&aborted));
    rig_free(r, x);
    return;
  }
  a.caller = gettid();
  pthread_create(&thread, NULL, abort_elsewhere, &a);
  CODE(sum(r, x, 10), ncclInternalError);
  pthread_join(thread, NULL);
  OK(a.result);
  atomic_store(&aborted, true);
  r->comm = NULL;
  rig_free(r, x);
}

static void a_first_call_connects_in_the_caller(void **state) {
  (void)state;
  rig_set("FAKENCCL_VERSION", "22203");
  assert_int_equal(rig_run_bare(1, 2, call_alone, NULL), 0);
  QUIET();
}

static void abort_an_init(rig *r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  pthread_t thread;
  abortion a = {.r = r};
  config.blocking = 0;
  CODE(L.f_ncclCommInitRankConfig(&r->comm, 2, r->id, 0, &config), ncclInProgress);
  pthread_create(&thread, NULL, abort_elsewhere, &a);
  pthread_join(thread, NULL);
  CODE(a.result, ncclInternalError);
  rig_abort(r, r->comm);
  r->comm = NULL;
}

static void an_init_is_aborted_by_its_thread(void **state) {
  (void)state;
  rig_set("FAKENCCL_VERSION", "21805");
  assert_int_equal(rig_run_bare(1, 1, abort_an_init, NULL), 0);
  LOGGED("its init is in progress, which before 2.19 another thread frees");
}

/* The last abort of a process waits for the graphs of all its ranks. */
static void abort_before_the_graph(rig *r) {
  float *x = rig_floats(r, 10);
  pthread_t thread;
  abortion a = {.r = r, .result = ncclNumResults};
  CUgraph graph;
  OK(L.f_cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(sum(r, x, 10));
  OK(L.f_cuStreamEndCapture(r->stream, &graph));
  pthread_create(&thread, NULL, abort_elsewhere, &a);
  rig_pause_ms(150);
  CHECK(pthread_tryjoin_np(thread, NULL) != 0);
  OK(L.f_cuGraphDestroy(graph));
  pthread_join(thread, NULL);
  OK(a.result);
  r->comm = NULL;
  rig_free(r, x);
}

static void graphs_delay_an_abort(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 1, abort_before_the_graph, NULL), 0);
  QUIET();
}

static void release_before_the_end(rig *r) {
  CUcontext other;
  OK(L.f_cuDevicePrimaryCtxRetain(&other, 3));
  OK(L.f_cuCtxSetCurrent(other));
  OK(rig_init(r));
  OK(L.f_cuCtxSetCurrent(r->context));
  OK(L.f_cuDevicePrimaryCtxRelease(3));
  rig_destroy(r, r->comm);
  r->comm = NULL;
}

static void contexts_outlive_communicators(void **state) {
  (void)state;
  assert_int_equal(rig_run_bare(1, 1, release_before_the_end, NULL), 0);
  LOGGED("the context of its device 3 was released before the last communicator of the process ended");
}

/* A call that is refused is the last one. */
static void call_wrongly(rig *r) {
  float *x = rig_floats(r, 10);
  start_without_blocking(r);
  CODE(sum(r, x, 1000), ncclInvalidArgument);
  CODE(rig_status(r), ncclInvalidArgument);
  CODE(sum(r, x, 10), ncclInvalidArgument);
  rig_abort(r, r->comm);
  r->comm = NULL;
  rig_free(r, x);
}

static void a_failed_call_stays(void **state) {
  (void)state;
  assert_int_equal(rig_run_bare(1, 2, call_wrongly, NULL), 0);
  LOGGED("is not inside of memory");
}

/* ---- init ---- */

static void *init_in_vain(void *arg) {
  rig *r = arg;
  OK(L.f_cuCtxSetCurrent(r->context));
  CODE(rig_init(r), ncclInvalidUsage);
  return NULL;
}

static void miss_a_rank(rig *r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  pthread_t thread;
  ncclResult_t status;
  config.blocking = 0;
  CODE(L.f_ncclCommInitRankConfig(&r->comm, 2, r->id, 0, &config), ncclInProgress);
  rig_pause_ms(30);
  OK(L.f_ncclCommGetAsyncError(r->comm, &status));
  CODE(status, ncclInProgress);
  rig_abort(r, r->comm);
  r->comm = NULL;
  OK(L.f_ncclGetUniqueId(&r->id)); /* the same, blocking, and aborted by another thread */
  r->ranks = 2;
  pthread_create(&thread, NULL, init_in_vain, r);
  while (__atomic_load_n(&r->comm, __ATOMIC_ACQUIRE) == NULL) rig_pause_ms(1);
  rig_pause_ms(20);
  rig_abort(r, r->comm);
  pthread_join(thread, NULL);
  r->comm = NULL;
  r->ranks = 1;
}

static void init_waits_for_all_ranks(void **state) {
  (void)state;
  assert_int_equal(rig_run_bare(1, 1, miss_a_rank, NULL), 0);
  QUIET();
}

/* ---- on request ---- */

static void fail_on_request(rig *r) {
  float *x = rig_floats(r, 10);
  OK(sum(r, x, 10));
  OK(L.f_cuStreamSynchronize(r->stream));
  CODE(sum(r, x, 10), r->rank == 1 ? ncclRemoteError : ncclSuccess);
  if (r->rank == 1) OK(sum(r, x, 10));
  OK(L.f_cuStreamSynchronize(r->stream));
  CHECK(rig_is(r, x, 10, 6));
  CODE(L.f_ncclBroadcast(x, x, 10, ncclFloat32, 0, r->comm, r->stream), ncclSystemError);
  rig_free(r, x);
}

static void calls_fail_on_request(void **state) {
  (void)state;
  rig_set("FAKENCCL_FAIL", "ncclAllReduce:2@1=6,ncclBroadcast:1, ncclBroadcast:2");
  assert_int_equal(rig_run(1, 2, fail_on_request, NULL), 0);
  QUIET();
}

/* A buffer that is freed between the capture and the replay. */
static void free_before_the_replay(rig *r) {
  float *x = rig_floats(r, 10);
  CUgraph graph;
  CUgraphExec exec;
  OK(L.f_cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(sum(r, x, 10));
  OK(L.f_cuStreamEndCapture(r->stream, &graph));
  OK(L.f_cuGraphInstantiateWithFlags(&exec, graph, 0));
  rig_free(r, x);
  OK(L.f_cuGraphLaunch(exec, r->stream));
  CODE(L.f_cuStreamSynchronize(r->stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  _exit(r->failures > 0); /* after the fault nothing can be freed */
}

static void freed_memory_faults(void **state) {
  (void)state;
  assert_int_equal(rig_run(2, 1, free_before_the_replay, NULL), 0);
  LOGGED("are no memory of device 0 any more");
}

static const struct CMUnitTest tests[] = {
    RIG_TEST(calls_fail_on_request),
    RIG_TEST(an_absent_rank_is_waited_for),
    RIG_TEST(a_stalled_rank_never_comes),
    RIG_TEST(an_abort_is_seen_by_others),
    RIG_TEST(init_waits_for_all_ranks),
    RIG_TEST(a_killed_process_ends_nothing_but_itself),
    RIG_TEST(freed_memory_faults),
    RIG_TEST(kernels_of_windows_hear_no_abort),
    RIG_TEST(a_first_call_connects_in_the_caller),
    RIG_TEST(an_init_is_aborted_by_its_thread),
    RIG_TEST(a_failed_call_stays),
    RIG_TEST(graphs_delay_an_abort),
    RIG_TEST(contexts_outlive_communicators),
};
RIG_MAIN(tests)
