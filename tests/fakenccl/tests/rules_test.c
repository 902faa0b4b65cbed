/* Rules of NCCL: each violation is refused or shows in the status, with a line that names ranks and
 * calls. */
#include <unistd.h>

#include "tests/fakenccl/tests/rig.h"

static ncclResult_t sum(const rig *r, float *x, size_t n) {
  return L.f_ncclAllReduce(x, x, n, ncclFloat32, ncclSum, r->comm, r->stream);
}

static void give_up(rig *r) {
  rig_abort(r, r->comm);
  r->comm = NULL;
  OK(L.f_cuStreamSynchronize(r->stream));
}

/* ---- calls that do not match ---- */

typedef struct mismatch {
  int kind, dtype, op, root;
  size_t count;
  const char *text;
} mismatch;

static ncclResult_t call(const rig *r, const mismatch *m, void *x, void *y) {
  ncclDataType_t dtype = (ncclDataType_t)m->dtype;
  switch (m->kind) {
  case 0: return L.f_ncclAllReduce(x, y, m->count, dtype, (ncclRedOp_t)m->op, r->comm, r->stream);
  case 1: return L.f_ncclBroadcast(x, y, m->count, dtype, m->root, r->comm, r->stream);
  case 2: return L.f_ncclReduce(x, y, m->count, dtype, (ncclRedOp_t)m->op, m->root, r->comm, r->stream);
  case 3: return L.f_ncclAllGather(x, y, m->count, dtype, r->comm, r->stream);
  default: return L.f_ncclReduceScatter(x, y, m->count, dtype, (ncclRedOp_t)m->op, r->comm, r->stream);
  }
}

static void call_differently(rig *r) {
  const mismatch *m = r->arg;
  float *x = rig_floats(r, 100), *y = rig_floats(r, 100);
  OK(sum(r, y, 10));
  OK(call(r, &m[r->rank], x, y));
  CHECK(rig_reaches(r, ncclInvalidUsage));
  CHECK(rig_stream_is_busy(r));
  CHECK(strstr(L.f_ncclGetLastError(r->comm), "rank 0 calls") != NULL);
  CODE(sum(r, x, 1), ncclInvalidUsage);
  give_up(r);
  rig_free(r, x), rig_free(r, y);
}

static void ranks_must_make_the_same_calls(void **state) {
  (void)state;
  static const mismatch pairs[][2] = {
      {{0, ncclFloat32, ncclSum, 0, 10, "ncclAllReduce of 10 ncclFloat32 with ncclSum"},
       {0, ncclFloat32, ncclSum, 0, 11, "ncclAllReduce of 11 ncclFloat32 with ncclSum"}},
      {{0, ncclFloat32, ncclSum, 0, 10, "ncclAllReduce of 10 ncclFloat32"},
       {0, ncclInt32, ncclSum, 0, 10, "ncclAllReduce of 10 ncclInt32"}},
      {{0, ncclFloat32, ncclSum, 0, 10, "with ncclSum"}, {0, ncclFloat32, ncclAvg, 0, 10, "with ncclAvg"}},
      {{1, ncclFloat32, ncclSum, 0, 10, "ncclBroadcast of 10 ncclFloat32, root 0"},
       {1, ncclFloat32, ncclSum, 1, 10, "ncclBroadcast of 10 ncclFloat32, root 1"}},
      {{2, ncclFloat32, ncclMin, 0, 10, "ncclReduce of 10 ncclFloat32 with ncclMin, root 0"},
       {2, ncclFloat32, ncclMin, 1, 10, "ncclReduce of 10 ncclFloat32 with ncclMin, root 1"}},
      {{3, ncclFloat32, ncclSum, 0, 10, "ncclAllGather of 10"},
       {4, ncclFloat32, ncclSum, 0, 10, "ncclReduceScatter of 10"}},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    for (int processes = 1; processes <= 2; processes++) {
      assert_int_equal(rig_run(processes, 2 / processes, call_differently, (void *)(uintptr_t)pairs[i]), 0);
      const char *log = rig_log();
      assert_non_null(strstr(log, "collective 2 does not match"));
      assert_non_null(strstr(log, "rank 0 calls"));
      assert_non_null(strstr(log, pairs[i][0].text));
      assert_non_null(strstr(log, pairs[i][1].text));
    }
  }
}

static void group_differently(rig *r) {
  float *x = rig_floats(r, 10), *y = rig_floats(r, 10);
  if (r->rank == 0) OK(L.f_ncclGroupStart());
  OK(sum(r, x, 10));
  ncclResult_t second = sum(r, y, 10); /* refused where the mismatch has been found already */
  CHECK(second == ncclSuccess || (r->rank == 1 && second == ncclInvalidUsage));
  if (r->rank == 0) OK(L.f_ncclGroupEnd());
  CHECK(rig_reaches(r, ncclInvalidUsage));
  give_up(r);
  rig_free(r, x), rig_free(r, y);
}

static void groups_must_be_the_same(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, group_differently, NULL), 0);
  LOGGED("call 1 of 2 in its group");
}

/* ---- messages ---- */

static void send_too_much(rig *r) {
  float *x = rig_floats(r, 20);
  if (r->rank == 0)
    OK(L.f_ncclSend(x, 20, ncclFloat32, 1, r->comm, r->stream));
  else
    OK(L.f_ncclRecv(x, 10, ncclFloat32, 0, r->comm, r->stream));
  CHECK(rig_reaches(r, ncclInvalidUsage));
  give_up(r);
  rig_free(r, x);
}

static void send_into_a_collective(rig *r) {
  float *x = rig_floats(r, 20);
  if (r->rank == 0)
    OK(L.f_ncclSend(x, 20, ncclFloat32, 1, r->comm, r->stream));
  else
    OK(sum(r, x, 20));
  CHECK(rig_reaches(r, ncclInvalidUsage));
  give_up(r);
  rig_free(r, x);
}

/* Both send first, and outside of a group. */
static void send_crosswise(rig *r) {
  float *x = rig_floats(r, 20), *y = rig_floats(r, 20);
  OK(L.f_ncclSend(x, 20, ncclFloat32, 1 - r->rank, r->comm, r->stream));
  OK(L.f_ncclRecv(y, 20, ncclFloat32, 1 - r->rank, r->comm, r->stream));
  rig_pause_ms(50);
  CHECK(rig_stream_is_busy(r));
  CODE(rig_status(r), ncclSuccess);
  give_up(r);
  rig_free(r, x), rig_free(r, y);
}

static void messages_must_match(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, send_too_much, NULL), 0);
  LOGGED("rank 1 calls ncclRecv of 10 ncclFloat32 from rank 0, but rank 0 calls ncclSend of 20 ncclFloat32 "
         "to rank 1");
  assert_int_equal(rig_run(1, 2, send_into_a_collective, NULL), 0);
  LOGGED("rank 0 calls ncclSend of 20 ncclFloat32 to rank 1, but rank 1 calls ncclAllReduce of 20");
  assert_int_equal(rig_run(1, 2, send_crosswise, NULL), 0);
  QUIET();
}

/* ---- arguments ---- */

static void pass_wrong_things(rig *r) {
  float *x = rig_floats(r, 100), host[100], *y;
  CUcontext other;
  CUstream stream;
  size_t far = 100;
  CODE(L.f_ncclAllReduce(host, x, 10, ncclFloat32, ncclSum, r->comm, r->stream), ncclInvalidArgument);
  CODE(L.f_ncclAllReduce(x, NULL, 10, ncclFloat32, ncclSum, r->comm, r->stream), ncclInvalidArgument);
  CODE(sum(r, x + 1, far), ncclInvalidArgument);
  CODE(sum(r, x, SIZE_MAX / 2), ncclInvalidArgument);
  CODE(L.f_ncclAllGather(x, x + 10, 20, ncclFloat32, r->comm, r->stream), ncclInvalidArgument);
  CODE(L.f_ncclAllReduce(x, x, 1, (ncclDataType_t)12, ncclSum, r->comm, r->stream), ncclInvalidArgument);
  CODE(L.f_ncclAllReduce(x, x, 1, ncclFloat32, (ncclRedOp_t)9, r->comm, r->stream), ncclInvalidArgument);
  CODE(L.f_ncclBroadcast(x, x, 1, ncclFloat32, 1, r->comm, r->stream), ncclInvalidArgument);
  CODE(L.f_ncclSend(x, 1, ncclFloat32, -1, r->comm, r->stream), ncclInvalidArgument);
  OK(L.f_ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, r->comm, r->stream)); /* is no call */
  OK(L.f_cuDevicePrimaryCtxRetain(&other, 3));
  OK(L.f_cuCtxSetCurrent(other));
  y = rig_new(r, 400);
  CODE(sum(r, x, 1), ncclInvalidUsage);
  OK(L.f_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(L.f_cuCtxSetCurrent(r->context));
  CODE(L.f_ncclAllReduce(x, x, 1, ncclFloat32, ncclSum, r->comm, stream), ncclInvalidUsage);
  CODE(L.f_ncclAllReduce(x, y, 1, ncclFloat32, ncclSum, r->comm, r->stream), ncclInvalidArgument);
  OK(L.f_cuCtxSetCurrent(other));
  OK(L.f_cuStreamDestroy(stream));
  rig_free(r, y);
  OK(L.f_cuDevicePrimaryCtxRelease(3));
  OK(L.f_cuCtxSetCurrent(r->context));
  rig_free(r, x);
}

static void arguments_are_checked(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 1, pass_wrong_things, NULL), 0);
  const char *log = rig_log();
  static const char *const texts[] = {
      "ncclAllReduce: rank 0: the operand, 40 bytes from",
      "rank 0: the result, 40 bytes from (nil), is not inside of memory of its device 0",
      "operand and result overlap, and not in place",
      "no dtype 12",
      "no operator 9",
      "ncclBroadcast: rank 0: 1 is no rank of 1",
      "ncclSend: rank 0: -1 is no rank of 1",
      "the current context is not that of its device 0",
      "the stream is not one of its device 0"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strstr(log, texts[i]) == NULL) fail_msg("no '%s' in\n%s", texts[i], log);
}

/* ---- groups ---- */

static void group_wrongly(rig *r) {
  float *x = rig_floats(r, 10);
  ncclComm_t second = NULL;
  ncclUniqueId id;
  CODE(L.f_ncclGroupEnd(), ncclInvalidUsage);
  OK(L.f_ncclGroupStart());
  OK(sum(r, x, 10));
  CODE(sum(r, x, 11), ncclInvalidArgument);
  OK(sum(r, x, 10));
  CODE(L.f_ncclGroupEnd(), ncclInvalidArgument);
  OK(L.f_cuStreamSynchronize(r->stream));
  CHECK(rig_is(r, x, 10, 1)); /* nothing ran */
  OK(L.f_ncclGetUniqueId(&id));
  OK(L.f_ncclGroupStart());
  OK(sum(r, x, 10));
  OK(L.f_ncclCommInitRank(&second, 1, id, 0));
  CODE(L.f_ncclGroupEnd(), ncclInvalidUsage);
  rig_abort(r, second);
  OK(sum(r, x, 10)); /* the thread has no group any more */
  OK(L.f_cuStreamSynchronize(r->stream));
  rig_free(r, x);
}

static void groups_are_checked(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 1, group_wrongly, NULL), 0);
  const char *log = rig_log();
  assert_non_null(strstr(log, "ncclGroupEnd: no group was started on this thread"));
  assert_non_null(strstr(log, "ncclGroupEnd: a group has collectives and also inits"));
}

static void capture_half_of_a_group(rig *r) {
  float *x = rig_floats(r, 10);
  CUstream other;
  CUgraph graph;
  OK(L.f_cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(L.f_cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(L.f_ncclGroupStart());
  OK(sum(r, x, 5));
  OK(L.f_ncclAllReduce(x + 5, x + 5, 5, ncclFloat32, ncclSum, r->comm, other));
  CODE(L.f_ncclGroupEnd(), ncclInvalidUsage);
  OK(L.f_cuStreamEndCapture(r->stream, &graph));
  OK(L.f_cuGraphDestroy(graph));
  OK(L.f_cuStreamDestroy(other));
  rig_free(r, x);
}

static void a_group_is_captured_or_not(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 1, capture_half_of_a_group, NULL), 0);
  LOGGED("either none or all communicators in a group can be captured");
}

/* ---- ends ---- */

static void destroy_too_early(rig *r) {
  float *x = rig_floats(r, 10);
  if (r->rank == 0) { /* rank 1 does not come */
    OK(sum(r, x, 10));
    CODE(L.f_ncclCommDestroy(r->comm), ncclInvalidUsage);
    CODE(L.f_cuStreamSynchronize(r->stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    CODE(sum(r, x, 10), ncclInvalidUsage);
    CODE(L.f_ncclCommDestroy(r->comm), ncclInvalidUsage);
    CODE(L.f_ncclCommAbort((ncclComm_t)(void *)x), ncclInvalidArgument);
    _exit(r->failures > 0); /* after the fault nothing can be freed */
  }
  rig_free(r, x);
}

/* In a process of its own, whose context ends. */
static void destroying_ends_no_work(void **state) {
  (void)state;
  assert_int_equal(rig_run(2, 1, destroy_too_early, NULL), 0);
  const char *log = rig_log();
  assert_non_null(strstr(log, "of rank 0 is destroyed, but its collectives have not ended"));
  assert_non_null(strstr(log, "rank 0: a collective runs, but its communicator was destroyed"));
  assert_non_null(strstr(log, "ncclAllReduce: communicator 1 of rank 0 was destroyed"));
  assert_non_null(strstr(log, "ncclCommDestroy: communicator 1 of rank 0 was destroyed"));
  assert_non_null(strstr(log, "is no communicator"));
}

static void destroy_before_the_graph(rig *r) {
  float *x = rig_floats(r, 10);
  CUgraph graph;
  OK(L.f_cuStreamBeginCapture(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(sum(r, x, 10));
  OK(L.f_cuStreamEndCapture(r->stream, &graph));
  CODE(L.f_ncclCommDestroy(r->comm), ncclInvalidUsage);
  r->comm = NULL;
  OK(L.f_cuGraphDestroy(graph));
  rig_free(r, x);
}

static void graphs_end_first(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 1, destroy_before_the_graph, NULL), 0);
  LOGGED("is destroyed, but a graph with its collectives is alive");
}

static void use_after_the_end(rig *r) {
  float *x = rig_floats(r, 10);
  OK(L.f_ncclCommFinalize(r->comm));
  CODE(sum(r, x, 10), ncclInvalidUsage);
  rig_destroy(r, r->comm);
  CODE(rig_init(r), ncclSystemError); /* the id has served */
  OK(L.f_ncclGetUniqueId(&r->id));
  OK(rig_init(r));
  rig_abort(r, r->comm);
  CODE(sum(r, x, 10), ncclInvalidUsage);
  r->comm = NULL;
  CODE(sum(r, x, 10), ncclInvalidArgument);
  rig_free(r, x);
}

static void what_has_ended_is_not_used(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 1, use_after_the_end, NULL), 0);
  const char *log = rig_log();
  assert_non_null(strstr(log, "the communicator was finalized"));
  assert_non_null(strstr(log, "the process that made the id, or its communicator, has ended"));
  assert_non_null(strstr(log, "was aborted"));
  assert_non_null(strstr(log, "the communicator is NULL"));
}

/* ---- leaks ---- */

static void leave_everything(rig *r) {
  void *at, *handle;
  ncclWindow_t window;
  OK(L.f_ncclMemAlloc(&at, 4096));
  OK(L.f_ncclCommWindowRegister(r->comm, at, 4096, &window, NCCL_WIN_COLL_SYMMETRIC));
  OK(L.f_ncclCommRegister(r->comm, at, 4096, &handle));
  rig_destroy(r, r->comm);
  r->comm = NULL;
  OK(L.f_ncclGetUniqueId(&r->id));
  if (r->rank == 0) OK(L.f_ncclCommInitRank(&r->comm, 1, r->id, 0));
  r->comm = NULL;
}

static void what_is_left_is_named(void **state) {
  (void)state;
  assert_int_equal(rig_run(2, 1, leave_everything, NULL), 0);
  const char *log = rig_log();
  assert_non_null(strstr(log, "leak: a window of communicator 1, rank 0, was not given back"));
  assert_non_null(strstr(log, "leak: a registered buffer of communicator 1, rank 1, was not given back"));
  assert_non_null(strstr(log, "leak: communicator 2, rank 0 of 1, was never destroyed"));
  assert_non_null(strstr(log, "leak: 4096 bytes of ncclMemAlloc"));
}

static const struct CMUnitTest tests[] = {
    RIG_TEST(destroying_ends_no_work),
    RIG_TEST(what_is_left_is_named),
    RIG_TEST(ranks_must_make_the_same_calls),
    RIG_TEST(groups_must_be_the_same),
    RIG_TEST(messages_must_match),
    RIG_TEST(arguments_are_checked),
    RIG_TEST(groups_are_checked),
    RIG_TEST(a_group_is_captured_or_not),
    RIG_TEST(graphs_end_first),
    RIG_TEST(what_has_ended_is_not_used),
};
RIG_MAIN(tests)
