/* tests/fakenccl/fakenccl.h: shared by the files of the double of libnccl.so.2.
 *
 * It runs over the double of the CUDA driver (tests/fakecuda). The ranks of a communicator are threads of one
 * process or of several processes of one host. They share a file in memory (clique.h), through which they
 * tell each other their calls and exchange data in parts. A collective is work of its stream, and a node of
 * the graph where the stream captures. That work never blocks the engine of a device: while other ranks are
 * not there, it returns and is called again (run.c), so other streams of the device go on.
 *
 * Every rank reduces the operands itself, in the order of ranks, and rounds after each operation to the type,
 * so results have the same bits on all ranks and in every run.
 *
 * Violations of NCCL's rules are reported: one line on stderr and in FAKENCCL_LOG, and the code that NCCL
 * returns, or ncclInvalidUsage. Ranks whose calls do not match are named with their calls in the status of
 * the communicator, and the work goes on waiting, as NCCL would hang. A rank that is absent or dead lets the
 * others wait until ncclCommAbort.
 *
 * docs/guide/gpu.md lists the environment variables FAKENCCL_..., of which those about one rank count its
 * collectives from 1. NCCL_HOSTID and CUDA_VISIBLE_DEVICES mean what they mean to NCCL: devices of two host
 * ids are two devices.
 */
#pragma once

#include <cuda.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fakecuda/driver/task.h"
#include "tests/fakenccl/clique.h"

#define FAKENCCL_API           __attribute__((visibility("default")))
#define FAKENCCL_PRINTF(at, n) __attribute__((format(printf, at, n)))
#define FAKENCCL_TRY(work)                                                                                   \
  do {                                                                                                       \
    ncclResult_t tried = (work);                                                                             \
    if (tried != ncclSuccess) return tried;                                                                  \
  } while (0)

typedef struct ncclComm fakenccl_comm;
typedef struct fakenccl_thread fakenccl_thread;

/* ---- log.c -----------------------------------------------------------------------------------------------
 */

/* Writes one line to stderr and FAKENCCL_LOG. Any thread. */
void fakenccl_log(const char *format, ...) FAKENCCL_PRINTF(1, 2);
/* Logs "NAME: text" of the entry point that runs, keeps it for ncclGetLastError, and returns `code`. */
ncclResult_t fakenccl_refuse(ncclResult_t code, const char *format, ...) FAKENCCL_PRINTF(2, 3);
const char *fakenccl_last_text(void);

/* ---- faults.c --------------------------------------------------------------------------------------------
 */

/* Of a communicator, read when it is made. */
typedef struct fakenccl_faults {
  uint64_t stall, kill; /* the number of the collective; 0: none */
  int signal;
  uint64_t delay_us, late_us, seed; /* late_us: of every launch, which another thread then makes */
  bool reorders, silent;
  int progress; /* how often the status has to be asked for */
} fakenccl_faults;

void fakenccl_faults_read(fakenccl_faults *faults, int rank);
/* The next number of a sequence. */
uint64_t fakenccl_draw(uint64_t *chance);
int fakenccl_version(void);
/* First in each entry point: names it, counts the call; fails where the version lacks it or a test asked for
 * a failure. comm may be NULL. */
ncclResult_t fakenccl_enter(const char *name, const fakenccl_comm *comm);

/* ---- driver.c: the double of the driver ------------------------------------------------------------------
 */

#define FAKENCCL_DRIVER(X)                                                                                   \
  X(cuCtxGetCurrent)                                                                                         \
  X(cuCtxGetDevice)                                                                                          \
  X(cuCtxPushCurrent_v2)                                                                                     \
  X(cuCtxPopCurrent_v2)                                                                                      \
  X(cuCtxSetCurrent)                                                                                         \
  X(cuDeviceGetCount)                                                                                        \
  X(cuDeviceGetUuid_v2)                                                                                      \
  X(cuDevicePrimaryCtxRetain)                                                                                \
  X(cuDevicePrimaryCtxRelease_v2)                                                                            \
  X(cuEventCreate)                                                                                           \
  X(cuEventDestroy_v2)                                                                                       \
  X(cuEventRecord)                                                                                           \
  X(cuMemAlloc_v2)                                                                                           \
  X(cuMemFree_v2)                                                                                            \
  X(cuStreamGetCtx)                                                                                          \
  X(cuStreamIsCapturing)                                                                                     \
  X(cuStreamWaitEvent)                                                                                       \
  X(fakecuda_call)                                                                                           \
  X(fakecuda_enqueue_waiting)                                                                                \
  X(fakecuda_real)                                                                                           \
  X(fakecuda_wake)

typedef struct fakenccl_driver {
#define FAKENCCL_MEMBER(name) __typeof__(&name) f_##name;
  FAKENCCL_DRIVER(FAKENCCL_MEMBER)
#undef FAKENCCL_MEMBER
} fakenccl_driver;

/* NULL: libcuda.so.1 of the double is not loaded. */
const fakenccl_driver *fakenccl_driver_get(void);
/* ncclUnhandledCudaError, with a line that names the object (`what`), unless code is CUDA_SUCCESS. */
ncclResult_t fakenccl_cuda(CUresult code, const char *what);

/* ---- communicators: comm.c, init.c ------------------------------------------------------------------------
 */

/* A communicator that has ended stays in memory, so that later uses of its handle are reported. */
enum { FAKENCCL_INIT, FAKENCCL_READY, FAKENCCL_FINAL, FAKENCCL_BROKEN, FAKENCCL_ABORTED, FAKENCCL_DESTROYED };

typedef struct fakenccl_op {
  fakenccl_what what;
  const void *from;
  void *to;
  /* ncclRedOpCreatePreMulSum, and ncclAvg of floats: the factor, in the element type; or where it is. */
  bool multiplies;
  unsigned char factor[8];
  const void *factor_from;
  /* of the run */
  uint64_t number, base, parts, posted, taken; /* base: the first part, in the communicator's numbers */
  char *real_from, *real_to;
  bool arrived, compared, done;
} fakenccl_op;

/* The calls of a group on one communicator: one piece of work on a stream. */
typedef struct fakenccl_batch {
  struct fakenccl_batch *next;
  fakenccl_comm *comm;
  CUstream stream;
  bool captured;
  bool symmetric;  /* all buffers lie in windows */
  uint64_t ticket; /* its place among the batches that are not captured */
  bool begun, stalled, ending;
  double until;   /* it rests until then */
  double checked; /* when the other processes were last found alive */
  int n;
  fakenccl_op ops[];
} fakenccl_batch;

typedef struct fakenccl_item { /* a window, a registered buffer, or an operator */
  struct fakenccl_item *next;
  fakenccl_comm *comm;
  const void *address;
  size_t bytes;
  int kind;   /* FAKENCCL_WINDOW ... */
  int number; /* of an operator */
  ncclDataType_t dtype;
  unsigned char factor[8];
  const void *factor_from;
} fakenccl_item;

/* The event of a stream that was one of several in a group. */
typedef struct fakenccl_mark {
  struct fakenccl_mark *next;
  CUstream stream;
  CUevent event;
} fakenccl_mark;

enum { FAKENCCL_WINDOW, FAKENCCL_BUFFER, FAKENCCL_OPERATOR, FAKENCCL_MEMORY };

struct ncclComm {
  fakenccl_comm *next;
  uint64_t number;
  int rank, ranks, device, process;
  CUcontext context;
  bool retained;  /* the context, by ncclCommInitAll */
  uint64_t nonce; /* of the clique */
  bool over;      /* it has ended; of the table */
  bool blocking;
  fakenccl_mark *marks; /* of the thread that calls */
  fakenccl_faults faults;
  fakenccl_clique *clique;
  fakenccl_member *me; /* of the clique */

  pthread_mutex_t lock; /* of the members below */
  _Atomic(int) state;   /* FAKENCCL_INIT ...; read without it, too */
  ncclResult_t error;   /* of this rank; that of all ranks is in the clique */
  char text[FAKENCCL_TEXT];
  fakenccl_batch *batches, *active; /* live; the one that runs */
  uint64_t issued, ended;           /* tickets */
  uint64_t begun, parts;            /* collectives; their parts */
  int captured;                     /* batches that graphs have */
  fakenccl_item *items;
  int operators;
  uint64_t windows, splits;
  uint64_t chance;
  double ready_at; /* init is not done before */
  int polls;       /* that the last call stays in progress for */

  /* of async.c */
  fakenccl_thread *maker;         /* the thread that called init */
  _Atomic(fakenccl_thread *) job; /* the thread in whose memory a job lies; NULL: none */
  pthread_t worker;
  atomic_bool has_worker, busy; /* busy: its call is in progress */
  atomic_bool stops;            /* the communicator is aborted */
};

/* A call that waits for other ranks on the host: init, split, registering a window. A group waits for all of
 * its calls at once. */
typedef struct fakenccl_job {
  fakenccl_comm *comm;
  /* Goes on without waiting. ncclInProgress: it has not ended. */
  ncclResult_t (*poll)(struct fakenccl_job *job);
  ncclResult_t result;
  bool goes_on; /* after the group, in a communicator that does not block */
  int stage;
  uint64_t number;
  ncclComm_t *place;
  ncclConfig_t config;
} fakenccl_job;

void fakenccl_pause(void);
/* A live communicator that is not aborted; else reports the use of its handle. */
ncclResult_t fakenccl_comm_check(const fakenccl_comm *comm);
/* The same, which is ready for work: not in progress, without an error. */
ncclResult_t fakenccl_comm_check_ready(fakenccl_comm *comm);
/* Whether the handle is or was one of a communicator. */
bool fakenccl_comm_find(const fakenccl_comm *comm);
/* Adds a communicator to the table. */
void fakenccl_comm_add(fakenccl_comm *comm);
/* The status of ncclCommGetAsyncError. The lock must be held. */
ncclResult_t fakenccl_comm_status(fakenccl_comm *comm);
/* Sets the error of this rank; later ones are dropped. The lock must be held. */
void fakenccl_comm_fail(fakenccl_comm *comm, ncclResult_t code, const char *format, ...)
    FAKENCCL_PRINTF(3, 4);
/* Sets it where another rank has aborted or its process has ended. */
void fakenccl_comm_look(fakenccl_comm *comm);
/* Sets the error of all ranks, and logs it where it is the first. */
void fakenccl_comm_fail_all(fakenccl_comm *comm, ncclResult_t code, const char *format, ...)
    FAKENCCL_PRINTF(3, 4);
/* Wakes the other ranks of this process. */
void fakenccl_comm_wake(const fakenccl_comm *comm);
/* Ends init if all ranks have come. The lock must be held. */
void fakenccl_init_poll(fakenccl_comm *comm);
/* Enters as a rank. *place: the communicator, whose init is in progress. */
ncclResult_t fakenccl_init_new(ncclComm_t *place, int ranks, const ncclUniqueId *id, int rank,
                               const ncclConfig_t *config);
ncclResult_t fakenccl_init_check_config(const ncclConfig_t *config);
/* The job that waits for the end of init. */
fakenccl_job fakenccl_init_job(fakenccl_comm *comm);

/* ---- async.c ----------------------------------------------------------------------------------------------
 */

/* Of init: this thread calls it. */
void fakenccl_async_make(fakenccl_comm *comm);
/* A call is in progress, whose job lies in this thread's memory. */
void fakenccl_async_leave(fakenccl_comm *comm);
/* A group begins on this thread. */
void fakenccl_async_start_group(void);
/* false: before 2.19 only the thread of an init may abort it. */
bool fakenccl_async_may_abort(const fakenccl_comm *comm);
/* Completes it, as all calls do but ncclCommGetAsyncError; reports that its thread has ended. Without the
 * lock. */
ncclResult_t fakenccl_async_complete(fakenccl_comm *comm);
/* Goes on with a call on a thread of its own. False: no thread could be started. body calls
 * fakenccl_async_end last. */
bool fakenccl_async_work(fakenccl_comm *comm, void *(*body)(void *arg), void *arg);
/* Of the worker: rests; false: the communicator is aborted. */
bool fakenccl_async_rest(const fakenccl_comm *comm, double s);
void fakenccl_async_end(fakenccl_comm *comm, ncclResult_t result);

/* ---- calls.c, group.c -------------------------------------------------------------------------------------
 */

const char *fakenccl_kind_name(int kind);
size_t fakenccl_dtype_size(int dtype);
/* "ncclAllReduce of 10 ncclFloat32 with ncclSum". */
void fakenccl_describe(const fakenccl_what *what, char *text, size_t size);
/* An operator of ncclRedOpCreatePreMulSum; NULL: none. */
const fakenccl_item *fakenccl_operator_find(const fakenccl_comm *comm, int op);
/* Whether a group of this thread is open. */
bool fakenccl_group_is_open(void);
/* Adds a checked call to the thread's group, or runs it as a group of its own. */
ncclResult_t fakenccl_group_add(fakenccl_comm *comm, CUstream stream, const fakenccl_op *op);
/* Adds it to the thread's group, or waits for its end. */
ncclResult_t fakenccl_group_add_job(const fakenccl_job *job);
/* A call of the group was refused, so the group will be. */
ncclResult_t fakenccl_group_fail(ncclResult_t code);

/* ---- items.c ----------------------------------------------------------------------------------------------
 */

/* Adds an item to those of a communicator. NULL: no memory. */
fakenccl_item *fakenccl_item_add(fakenccl_comm *comm, const fakenccl_item *item);
ncclResult_t fakenccl_item_give_back(fakenccl_comm *comm, int kind, const void *handle, const char *what);
/* Whether the address, or NULL, lies in a window. */
bool fakenccl_is_in_window(fakenccl_comm *comm, const void *at);
/* Whether a range lies in memory of ncclMemAlloc, and of the device. */
bool fakenccl_is_allocated(int device, const void *from, size_t bytes);

/* ---- run.c, exchange.c, pair.c: the work on the stream; the communicator's lock is held
 * -------------------- */

/* The body of fakecuda_enqueue_waiting. */
int fakenccl_batch_run(void *batch, bool first);
void fakenccl_batch_release(void *batch);
/* Takes back a batch that could not be enqueued. */
void fakenccl_batch_drop(fakenccl_batch *batch);
/* One step of a call, as far as the other ranks allow; true: something was done. */
bool fakenccl_exchange_step(fakenccl_comm *comm, fakenccl_op *op);
bool fakenccl_pair_step(fakenccl_batch *batch, fakenccl_op *op);

/* ---- arithmetic.c -----------------------------------------------------------------------------------------
 */

/* to[i] = from[0][i] op from[1][i] op ..., in this order, rounded to the type after each operation; integers
 * wrap; the least or greatest leaves NaN out, as fminf and fmaxf do. ncclAvg: the sum, of integers divided by
 * n at the end. */
void fakenccl_reduce(int dtype, int op, int n, const void *const *from, void *to, size_t count);
/* x[i] = x[i] * factor. */
void fakenccl_multiply(int dtype, void *x, size_t count, const void *factor);
/* 1 / n in the type of floats; false: the type is an integer. */
bool fakenccl_one_nth(int dtype, int n, void *factor);
