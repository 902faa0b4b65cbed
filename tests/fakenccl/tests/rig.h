/* tests/fakenccl/tests/rig.h: ranks as threads and processes on the doubles of the driver and of NCCL. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>
#include <nccl.h>

#define RIG_CUDA(X)                                                                                          \
  X(cuInit)                                                                                                  \
  X(cuDevicePrimaryCtxRetain)                                                                                \
  X(cuDevicePrimaryCtxRelease)                                                                               \
  X(cuCtxSetCurrent)                                                                                         \
  X(cuCtxSynchronize)                                                                                        \
  X(cuMemAlloc)                                                                                              \
  X(cuMemFree)                                                                                               \
  X(cuMemHostAlloc)                                                                                          \
  X(cuMemFreeHost)                                                                                           \
  X(cuStreamCreate)                                                                                          \
  X(cuStreamDestroy)                                                                                         \
  X(cuStreamSynchronize)                                                                                     \
  X(cuStreamQuery)                                                                                           \
  X(cuStreamWaitEvent)                                                                                       \
  X(cuEventCreate)                                                                                           \
  X(cuEventDestroy)                                                                                          \
  X(cuEventRecord)                                                                                           \
  X(cuMemcpyHtoDAsync)                                                                                       \
  X(cuMemcpyDtoHAsync)                                                                                       \
  X(cuMemcpyDtoDAsync)                                                                                       \
  X(cuMemsetD8Async)                                                                                         \
  X(cuStreamBeginCapture)                                                                                    \
  X(cuStreamEndCapture)                                                                                      \
  X(cuGraphInstantiateWithFlags)                                                                             \
  X(cuGraphDestroy)                                                                                          \
  X(cuGraphExecDestroy)                                                                                      \
  X(cuGraphLaunch)

#define RIG_NCCL(X)                                                                                          \
  X(ncclGetVersion)                                                                                          \
  X(ncclGetUniqueId)                                                                                         \
  X(ncclGetErrorString)                                                                                      \
  X(ncclGetLastError)                                                                                        \
  X(ncclCommInitRank)                                                                                        \
  X(ncclCommInitRankConfig)                                                                                  \
  X(ncclCommInitAll)                                                                                         \
  X(ncclCommFinalize)                                                                                        \
  X(ncclCommDestroy)                                                                                         \
  X(ncclCommAbort)                                                                                           \
  X(ncclCommSplit)                                                                                           \
  X(ncclCommGetAsyncError)                                                                                   \
  X(ncclCommCount)                                                                                           \
  X(ncclCommCuDevice)                                                                                        \
  X(ncclCommUserRank)                                                                                        \
  X(ncclAllReduce)                                                                                           \
  X(ncclBroadcast)                                                                                           \
  X(ncclBcast)                                                                                               \
  X(ncclReduce)                                                                                              \
  X(ncclReduceScatter)                                                                                       \
  X(ncclAllGather)                                                                                           \
  X(ncclSend)                                                                                                \
  X(ncclRecv)                                                                                                \
  X(ncclGroupStart)                                                                                          \
  X(ncclGroupEnd)                                                                                            \
  X(ncclRedOpCreatePreMulSum)                                                                                \
  X(ncclRedOpDestroy)                                                                                        \
  X(ncclMemAlloc)                                                                                            \
  X(ncclMemFree)                                                                                             \
  X(ncclCommRegister)                                                                                        \
  X(ncclCommDeregister)                                                                                      \
  X(ncclCommWindowRegister)                                                                                  \
  X(ncclCommWindowDeregister)

typedef struct rig_libraries {
#define MEMBER(name) __typeof__(&name) f_##name;
  RIG_CUDA(MEMBER) RIG_NCCL(MEMBER)
#undef MEMBER
} rig_libraries;
extern rig_libraries L;

enum { RIG_RANKS = 8 };

/* A rank: a thread. */
typedef struct rig {
  int rank, ranks, device;
  CUcontext context;
  CUstream stream;
  ncclUniqueId id;
  ncclComm_t comm;
  int failures;
  void *arg;
} rig;

/* In a rank, where cmocka's assertions cannot be used. */
#define CHECK(what)      rig_check(r, (what), #what, __FILE__, __LINE__)
#define CODE(work, code) rig_check_code(r, (int)(work), (int)(code), #work, __FILE__, __LINE__)
#define OK(work)         CODE(work, 0)
#define LOGGED(part)     assert_true(rig_logged(part))
/* Nothing but what the test has named by LOGGED was logged. */
#define QUIET() assert_string_equal(rig_log(), "")
bool rig_check(rig *r, bool ok, const char *what, const char *file, int line);
bool rig_check_code(rig *r, int got, int expected, const char *what, const char *file, int line);
bool rig_logged(const char *part);
/* The log since the last call of rig_logged or rig_log. */
const char *rig_log(void);

/* Until the end of the test: */
void rig_set(const char *name, const char *value);
int rig_teardown(void **state);

/* Runs body in every rank: `threads` ranks in each of `processes`. Each has its device, a context that is
 * current, a stream, an id in common, and, unless `bare`, a communicator, which is destroyed at the end if
 * the body has left it. Returns the number of failed checks; a process that was killed counts none. */
typedef void (*rig_body)(rig *r);
int rig_run(int processes, int threads, rig_body body, void *arg);
int rig_run_bare(int processes, int threads, rig_body body, void *arg);

ncclResult_t rig_init(rig *r);
/* The last of a process leaves the device of another rank current; these make the rank's current again. */
void rig_abort(rig *r, ncclComm_t comm);
void rig_destroy(rig *r, ncclComm_t comm);
/* The status, asked for until it is not ncclInProgress, or a minute has passed. */
ncclResult_t rig_status(const rig *r);
/* Asks until the status is the expected one. */
bool rig_reaches(rig *r, ncclResult_t expected);
bool rig_stream_is_busy(const rig *r);
/* Time in which a state would change that is to last. A slow machine makes it too short to show that, and
 * fails nothing. */
void rig_pause_ms(int ms);

void *rig_new(rig *r, size_t bytes);
void rig_free(rig *r, void *at);
void rig_put(rig *r, void *to, const void *from, size_t bytes);
void rig_get(rig *r, void *to, const void *from, size_t bytes);
/* n floats: 1 + rank, times 1, 2, ... */
float *rig_floats(rig *r, size_t n);
/* Whether x[i] = factor * (i + 1). */
bool rig_is(rig *r, const float *x, size_t n, float factor);

int rig_main(int argc, char **argv, const struct CMUnitTest *tests, size_t n);
#define RIG_TEST(name) cmocka_unit_test_teardown(name, rig_teardown)
#define RIG_MAIN(tests)                                                                                      \
  int main(int argc, char **argv) { return rig_main(argc, argv, tests, sizeof tests / sizeof *tests); }
