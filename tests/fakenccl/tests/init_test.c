/* Making communicators, splits, buffers, windows, operators and versions; texts of NVIDIA's library, where it
 * is found. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/fakenccl/tests/rig.h"

static ncclResult_t sum(const rig *r, float *x, size_t n) {
  return L.f_ncclAllReduce(x, x, n, ncclFloat32, ncclSum, r->comm, r->stream);
}

/* ---- init ---- */

static void ask(rig *r) {
  int ranks, rank, device;
  OK(L.f_ncclCommCount(r->comm, &ranks));
  OK(L.f_ncclCommUserRank(r->comm, &rank));
  OK(L.f_ncclCommCuDevice(r->comm, &device));
  CHECK(ranks == r->ranks && rank == r->rank && device == r->device);
  CODE(L.f_ncclCommCount(r->comm, NULL), ncclInvalidArgument);
  CODE(L.f_ncclCommGetAsyncError(r->comm, NULL), ncclInvalidArgument);
  CODE(rig_status(r), ncclSuccess);
  OK(L.f_ncclCommFinalize(r->comm));
  CODE(rig_status(r), ncclSuccess);
}

static void a_communicator_knows_its_place(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 3, ask, NULL), 0);
  assert_int_equal(rig_run(3, 1, ask, NULL), 0);
}

static void ask_without_blocking(rig *r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  float *x = rig_floats(r, 10);
  ncclResult_t status;
  config.blocking = 0;
  CODE(L.f_ncclCommInitRankConfig(&r->comm, r->ranks, r->id, r->rank, &config), ncclInProgress);
  CODE(rig_status(r), ncclSuccess);
  CODE(sum(r, x, 10), ncclInProgress);
  OK(L.f_ncclCommGetAsyncError(r->comm, &status));
  CODE(status, ncclInProgress);
  CODE(rig_status(r), ncclSuccess);
  CHECK(rig_is(r, x, 10, 3));
  CODE(sum(r, x, 10), ncclInProgress);
  CODE(sum(r, x, 10), ncclInvalidArgument); /* too early */
  rig_free(r, x);
}

static void calls_stay_in_progress(void **state) {
  (void)state;
  rig_set("FAKENCCL_PROGRESS", "3");
  assert_int_equal(rig_run_bare(1, 2, ask_without_blocking, NULL), 0);
  LOGGED("before the previous operation returned ncclSuccess");
}

static void init_late(rig *r) {
  ncclResult_t status;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  CODE(L.f_ncclCommInitRankConfig(&r->comm, r->ranks, r->id, r->rank, &config), ncclInProgress);
  OK(L.f_ncclCommGetAsyncError(r->comm, &status));
  CODE(status, ncclInProgress);
  CODE(rig_status(r), ncclSuccess);
}

static void init_is_delayed(void **state) {
  (void)state;
  rig_set("FAKENCCL_DELAY", "20000:3");
  assert_int_equal(rig_run_bare(1, 1, init_late, NULL), 0);
  QUIET();
}

static void init_wrongly(rig *r) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER, none;
  ncclUniqueId id;
  ncclComm_t comm;
  static const int twice[] = {1, 1};
  memset(&id, 0, sizeof id);
  memset(&none, 0, sizeof none);
  CODE(L.f_ncclCommInitRank(NULL, 1, r->id, 0), ncclInvalidArgument);
  CODE(L.f_ncclCommInitRank(&comm, 2, r->id, 2), ncclInvalidArgument);
  CODE(L.f_ncclCommInitRank(&comm, 0, r->id, 0), ncclInvalidArgument);
  CODE(L.f_ncclCommInitRank(&comm, 1, id, 0), ncclSystemError);
  CODE(L.f_ncclCommInitRankConfig(&comm, 1, r->id, 0, &none), ncclInvalidArgument);
  config.blocking = 7;
  CODE(L.f_ncclCommInitRankConfig(&comm, 1, r->id, 0, &config), ncclInvalidArgument);
  CODE(L.f_ncclCommInitAll(&comm, 5, NULL), ncclInvalidArgument);
  CODE(L.f_ncclCommInitAll(&comm, 2, twice), ncclInvalidUsage);
  CODE(L.f_ncclGetUniqueId(NULL), ncclInvalidArgument);
  CODE(L.f_ncclGetVersion(NULL), ncclInvalidArgument);
  OK(L.f_cuCtxSetCurrent(NULL));
  CODE(L.f_ncclCommInitRank(&comm, 1, r->id, 0), ncclInvalidUsage);
  CHECK(comm == NULL);
  OK(L.f_cuCtxSetCurrent(r->context));
  OK(L.f_ncclCommInitRank(&r->comm, 1, r->id, 0));
  CODE(L.f_ncclCommInitRank(&comm, 1, r->id, 0), ncclInvalidUsage); /* the id has served */
  OK(L.f_ncclCommDestroy(NULL));
}

static void init_is_checked(void **state) {
  (void)state;
  assert_int_equal(rig_run_bare(1, 1, init_wrongly, NULL), 0);
  static const char *const texts[] = {"Invalid rank requested : 2/2",
                                      "the id is not one of ncclGetUniqueId",
                                      "the configuration is not one of NCCL_CONFIG_INITIALIZER",
                                      "Invalid config blocking attribute value 7",
                                      "5 communicators on 4 devices",
                                      "device 1 is listed twice",
                                      "the thread has no current context; NCCL would take device 0",
                                      "the id has served another communicator already"};
  const char *log = rig_log();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strstr(log, texts[i]) == NULL) fail_msg("no '%s' in\n%s", texts[i], log);
}

/* ---- ranks that do not fit together ---- */

static void share_a_device(rig *r) {
  if (r->rank == 1 && r->arg != NULL) setenv("NCCL_HOSTID", "another", 1);
  CUcontext first;
  OK(L.f_cuDevicePrimaryCtxRetain(&first, 0));
  OK(L.f_cuCtxSetCurrent(first));
  CODE(rig_init(r), r->arg != NULL ? ncclSuccess : ncclInvalidUsage);
  if (r->arg == NULL) CHECK(strstr(L.f_ncclGetLastError(r->comm), "Duplicate GPU detected") != NULL);
  rig_abort(r, r->comm);
  r->comm = NULL;
  OK(L.f_cuCtxSetCurrent(r->context));
  OK(L.f_cuDevicePrimaryCtxRelease(0));
}

static void a_device_has_one_rank(void **state) {
  (void)state;
  assert_int_equal(rig_run_bare(1, 2, share_a_device, NULL), 0);
  LOGGED("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000");
  assert_int_equal(rig_run_bare(2, 1, share_a_device, NULL), 0);
  LOGGED("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000");
  assert_int_equal(rig_run_bare(2, 1, share_a_device, share_a_device), 0);
  QUIET();
}

/* The second one to come is refused, which also ends the first one's wait. */
static void disagree(rig *r) {
  const int *same_rank = r->arg;
  ncclComm_t comm = NULL;
  ncclResult_t result =
      L.f_ncclCommInitRank(&comm, *same_rank ? 2 : 2 + r->rank, r->id, *same_rank ? 0 : r->rank);
  CODE(result, ncclInvalidUsage);
  if (comm != NULL) rig_abort(r, comm);
}

static void ranks_must_agree(void **state) {
  (void)state;
  int same_rank = 0;
  assert_int_equal(rig_run_bare(1, 2, disagree, &same_rank), 0);
  LOGGED("mismatch in the number of ranks");
  same_rank = 1;
  assert_int_equal(rig_run_bare(2, 1, disagree, &same_rank), 0);
  LOGGED("rank 0 of 2 ranks has already checked in");
}

/* ---- splits ---- */

static void split(rig *r) {
  ncclComm_t part, none;
  int rank, ranks;
  float *x = rig_floats(r, 10);
  OK(L.f_ncclCommSplit(r->comm, r->rank % 2, -r->rank, &part, NULL));
  OK(L.f_ncclCommCount(part, &ranks));
  OK(L.f_ncclCommUserRank(part, &rank));
  CHECK(ranks == 2 && rank == (r->rank < 2)); /* keys turn the order around */
  OK(L.f_ncclAllReduce(x, x, 10, ncclFloat32, ncclSum, part, r->stream));
  CHECK(rig_is(r, x, 10, r->rank % 2 == 0 ? 4 : 6));
  OK(L.f_ncclCommSplit(r->comm, r->rank == 3 ? NCCL_SPLIT_NOCOLOR : 5, 0, &none, NULL));
  CHECK((none == NULL) == (r->rank == 3));
  if (none != NULL) rig_destroy(r, none);
  rig_destroy(r, part);
  CODE(L.f_ncclCommSplit(r->comm, -7, 0, &part, NULL), ncclInvalidArgument);
  rig_free(r, x);
}

static void communicators_split(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 4, split, NULL), 0);
  assert_int_equal(rig_run(2, 2, split, NULL), 0);
  assert_int_equal(rig_run(4, 1, split, NULL), 0);
  LOGGED("color -7");
}

/* ---- buffers, windows, operators ---- */

static void register_things(rig *r) {
  char *at, *far;
  void *handle;
  ncclWindow_t window;
  float *x = rig_floats(r, 2048);
  OK(L.f_ncclMemAlloc((void **)&at, 8192));
  OK(L.f_ncclCommRegister(r->comm, at, 8192, &handle));
  OK(L.f_ncclCommDeregister(r->comm, handle));
  CODE(L.f_ncclCommDeregister(r->comm, handle), ncclInvalidArgument);
  CODE(L.f_ncclCommRegister(r->comm, &far, 8, &handle), ncclInvalidArgument);
  OK(L.f_ncclCommWindowRegister(r->comm, at, 8192, &window, NCCL_WIN_COLL_SYMMETRIC));
  OK(L.f_ncclAllReduce(at, at, 100, ncclInt8, ncclSum, r->comm, r->stream));
  OK(L.f_cuStreamSynchronize(r->stream));
  OK(L.f_ncclCommWindowDeregister(r->comm, window));
  CODE(L.f_ncclCommWindowDeregister(r->comm, window), ncclInvalidArgument);
  CODE(L.f_ncclCommWindowRegister(r->comm, at + 16, 4096, &window, 0), ncclInvalidArgument);
  CODE(L.f_ncclCommWindowRegister(r->comm, x, 4096, &window, 0), ncclInvalidArgument);
  CODE(L.f_ncclCommWindowRegister(r->comm, at, 4096, &window, 8), ncclInvalidArgument);
  OK(L.f_ncclMemFree(at));
  CODE(L.f_ncclMemFree(at), ncclInvalidArgument);
  CODE(L.f_ncclMemAlloc((void **)&at, 0), ncclInvalidArgument);
  rig_free(r, x);
}

static void buffers_are_registered(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, register_things, NULL), 0);
  assert_int_equal(rig_run(2, 1, register_things, NULL), 0);
  const char *log = rig_log();
  assert_non_null(strstr(log, "Window address must be suitably aligned."));
  assert_non_null(strstr(log, "are not inside of memory of ncclMemAlloc"));
  assert_non_null(strstr(log, "is no registered buffer"));
  assert_non_null(strstr(log, "is not memory of ncclMemAlloc"));
}

static void register_differently(rig *r) {
  void *at;
  ncclWindow_t window;
  OK(L.f_ncclMemAlloc(&at, 8192));
  OK(L.f_ncclCommWindowRegister(r->comm, at, r->rank == 0 ? 4096 : 8192, &window, 1));
  OK(L.f_ncclCommWindowDeregister(r->comm, window));
  OK(L.f_ncclMemFree(at));
}

static void windows_have_sizes_of_their_own(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, register_differently, NULL), 0);
  QUIET();
}

/* The handle is written after the call has returned, and the communicator refuses calls until then. */
static void register_without_blocking(rig *r) {
  const int *silent = r->arg;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclWindow_t window = NULL;
  void *at, *handle;
  config.blocking = 0;
  CODE(L.f_ncclCommInitRankConfig(&r->comm, r->ranks, r->id, r->rank, &config), ncclInProgress);
  CODE(rig_status(r), ncclSuccess);
  OK(L.f_ncclMemAlloc(&at, 8192));
  CODE(L.f_ncclCommWindowRegister(r->comm, at, 8192, &window, 1), *silent ? ncclSuccess : ncclInProgress);
  CODE(L.f_ncclCommRegister(r->comm, at, 8192, &handle), ncclInvalidArgument);
  CODE(rig_status(r), ncclSuccess);
  CHECK(window != NULL);
  OK(L.f_ncclCommWindowDeregister(r->comm, window));
  OK(L.f_ncclMemFree(at));
}

static void windows_are_made_by_a_thread(void **state) {
  (void)state;
  static const char *const versions[] = {"22703", "22809"};
  for (int silent = 0; silent < 2; silent++) {
    rig_set("FAKENCCL_VERSION", versions[silent]);
    assert_int_equal(rig_run_bare(1, 2, register_without_blocking, &silent), 0);
    LOGGED("before the previous operation returned ncclSuccess");
  }
}

static void use_operators(rig *r) {
  ncclRedOp_t op;
  float two = 2, *x = rig_floats(r, 10);
  OK(L.f_ncclRedOpCreatePreMulSum(&op, &two, ncclFloat32, ncclScalarHostImmediate, r->comm));
  CODE(L.f_ncclAllReduce(x, x, 10, ncclFloat64, op, r->comm, r->stream), ncclInvalidArgument);
  OK(L.f_ncclAllReduce(x, x, 10, ncclFloat32, op, r->comm, r->stream));
  OK(L.f_ncclRedOpDestroy(op, r->comm)); /* allowed as soon as the call has returned */
  CHECK(rig_is(r, x, 10, 6));
  CODE(L.f_ncclAllReduce(x, x, 10, ncclFloat32, op, r->comm, r->stream), ncclInvalidArgument);
  CODE(L.f_ncclRedOpDestroy(op, r->comm), ncclInvalidArgument);
  CODE(L.f_ncclRedOpCreatePreMulSum(&op, &two, ncclFloat32, ncclScalarDevice, r->comm), ncclInvalidArgument);
  CODE(L.f_ncclRedOpCreatePreMulSum(NULL, &two, ncclFloat32, ncclScalarDevice, r->comm), ncclInvalidArgument);
  rig_free(r, x);
}

static void operators_are_checked(void **state) {
  (void)state;
  assert_int_equal(rig_run(1, 2, use_operators, NULL), 0);
  const char *log = rig_log();
  assert_non_null(strstr(log, "no operator 5"));
  assert_non_null(strstr(log, "is not in memory of device"));
}

/* ---- versions ---- */

static void use_an_old_version(rig *r) {
  int version;
  void *at;
  ncclWindow_t window;
  OK(L.f_ncclGetVersion(&version));
  CHECK(version == 21805);
  CODE(L.f_ncclMemAlloc(&at, 4096), ncclInvalidUsage);
  CODE(L.f_ncclCommRegister(r->comm, &version, 4, &at), ncclInvalidUsage);
  CODE(L.f_ncclCommWindowRegister(r->comm, NULL, 4096, &window, 0), ncclInvalidUsage);
  CHECK(strstr(L.f_ncclGetLastError(NULL), "NCCL 21805 has no such function") != NULL);
}

static void an_old_version_lacks_functions(void **state) {
  (void)state;
  int version;
  assert_int_equal(L.f_ncclGetVersion(&version), ncclSuccess);
  assert_int_equal(version, NCCL_VERSION_CODE);
  rig_set("FAKENCCL_VERSION", "21805");
  assert_int_equal(rig_run(1, 1, use_an_old_version, NULL), 0);
  LOGGED("ncclCommWindowRegister: NCCL 21805 has no such function, which came with 22700");
}

/* The texts are those of NVIDIA's library. */
static void errors_have_the_librarys_texts(void **state) {
  (void)state;
  const char *(*text)(ncclResult_t result) = NULL;
  void *library = dlopen(RIG_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  if (library != NULL) *(void **)(void *)&text = dlsym(library, "ncclGetErrorString");
  for (int code = 0; code < ncclNumResults; code++) {
    const char *own = L.f_ncclGetErrorString((ncclResult_t)code);
    assert_string_not_equal(own, "unknown result code");
    if (text != NULL) assert_string_equal(own, text((ncclResult_t)code));
  }
  assert_string_equal(L.f_ncclGetErrorString((ncclResult_t)99), "unknown result code");
}

static const struct CMUnitTest tests[] = {
    RIG_TEST(a_communicator_knows_its_place),
    RIG_TEST(calls_stay_in_progress),
    RIG_TEST(init_is_delayed),
    RIG_TEST(init_is_checked),
    RIG_TEST(a_device_has_one_rank),
    RIG_TEST(ranks_must_agree),
    RIG_TEST(communicators_split),
    RIG_TEST(buffers_are_registered),
    RIG_TEST(windows_have_sizes_of_their_own),
    RIG_TEST(windows_are_made_by_a_thread),
    RIG_TEST(operators_are_checked),
    RIG_TEST(an_old_version_lacks_functions),
    RIG_TEST(errors_have_the_librarys_texts),
};
RIG_MAIN(tests)
