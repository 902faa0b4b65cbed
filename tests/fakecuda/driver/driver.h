/* tests/fakecuda/driver/driver.h: shared by the files of the double of libcuda.so.1.
 *
 * It works on host memory. Streams, events and captured work are those of the simulated device
 * (backends/sim): the double checks arguments, keeps handles, and enqueues each copy, memset and kernel as a
 * task of that engine.
 *
 * Threads: one lock guards everything that the entry points share; an entry point holds it except while it
 * waits for the engine. The engine takes the lock of a context's memory only. */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/sim/callbacks.h"
#include "backends/sim/sim.h"

#define FAKE_API           __attribute__((visibility("default")))
#define FAKE_PRINTF(at, n) __attribute__((format(printf, at, n)))

typedef struct fake_context fake_context;
typedef struct fake_stream fake_stream;
typedef struct fake_capture fake_capture;

/* ---- settings.c: the environment variables FAKECUDA_...
 * --------------------------------------------------------- */

enum { FAKE_DEVICES = 64 };

typedef struct fake_settings {
  int visible[FAKE_DEVICES]; /* CUDA_VISIBLE_DEVICES: the number of each device in the machine */
  int devices, order, arch, version;
  int blocks; /* of a kernel on a multiprocessor, at most: as registers limit them */
  int64_t seed;
  uint64_t memory, others; /* others: what other processes and contexts have of it */
} fake_settings;

const fake_settings *fake_settings_get(void);

/* ---- log.c: FAKECUDA_LOG
 * ---------------------------------------------------------------------------------------- */

/* Appends one line to the log. Any thread. */
void fake_log(const char *format, ...) FAKE_PRINTF(1, 2);
/* The same from the handler of a signal. */
void fake_log_text(const char *text);

/* ---- calls.c: what each entry point does first and last
 * --------------------------------------------------------- */

enum {
  FAKE_INITIALIZED = 1, /* cuInit has been called */
  FAKE_CURRENT = 2,     /* the thread has a current context without a fault */
  FAKE_UNSAFE = 4,      /* forbidden while a capture that the thread's mode respects goes on */
  FAKE_FREES = 8        /* it does its work also where it returns a failure of something else */
};

typedef struct fake_call {
  const char *name;
  fake_context *context; /* the current one; NULL without FAKE_CURRENT */
  CUresult result;       /* FAKE_FREES: what it returns though it did its work */
} fake_call;

/* Counts the call, takes the lock, checks the state that the call needs. */
CUresult fake_enter(fake_call *call, int needs);
/* The same without counting. */
CUresult fake_enter_inside(fake_call *call, int needs);
CUresult fake_leave(fake_call *call, CUresult code);
/* Logs "NAME: text" and returns `code`. */
CUresult fake_refuse(const fake_call *call, CUresult code, const char *format, ...) FAKE_PRINTF(3, 4);
/* Waits without the lock until a stream has done its work up to a position. Returns the fault of the context.
 */
CUresult fake_wait(fake_call *call, tn_sim_stream *stream, uint64_t position);
/* Wait without the lock, since work may depend on another device, whose thread needs the lock to enqueue its
 * part: until a stream has done its work up to a position; until a device has done all of its work. false:
 * the context was released meanwhile. */
void fake_reach(tn_sim_stream *stream, uint64_t position);
bool fake_finish(const fake_context *context);
/* What FAKECUDA_FAIL=kernel:N=hang asks for, beside the codes of CUDA. */
enum { FAKE_HANGS = 1 << 20 };
/* Counts; the code that FAKECUDA_FAIL wants for this call, or CUDA_SUCCESS. */
CUresult fake_count(const char *name);
/* Adds to what FAKECUDA_COUNTS has under a name. */
void fake_count_more(const char *name, uint64_t more);

/* The body of an entry point: `work` is the check and the work, an expression of type CUresult. */
#define FAKE_CALL(needs, work)                                                                               \
  fake_call call = {.name = __func__};                                                                       \
  CUresult code = fake_enter(&call, (needs));                                                                \
  if (code == CUDA_SUCCESS) code = (work);                                                                   \
  return fake_leave(&call, code)

/* ---- handles.c: handles of live objects; a handle is never used again
 * -------------------------------------------- */

enum {
  FAKE_CONTEXT = 1,
  FAKE_STREAM,
  FAKE_EVENT,
  FAKE_MODULE,
  FAKE_FUNCTION,
  FAKE_GRAPH,
  FAKE_EXEC,
  FAKE_KINDS
};

void *fake_handle_new(int kind, const fake_context *context, void *object); /* NULL: no memory */
/* The object; NULL: freed, foreign, or of another kind. */
void *fake_handle_find(int kind, const void *handle);
void fake_handle_drop(const void *handle);
/* The next live object of a kind of a context from *slot on, which moves on; NULL: no more. */
void *fake_handle_next(int kind, const fake_context *context, size_t *slot);

/* ---- contexts.c
 * ------------------------------------------------------------------------------------------------- */

struct fake_context {
  CUcontext handle;
  int device, references;
  void *backend;
  tn_sim_device *sim;
  _Atomic(int) fault;                                     /* a CUresult: returned by every later call */
  uint64_t allocations, streams, events, modules, graphs; /* numbers for messages */
  uint64_t kernels;                                       /* the engine's */
  pthread_mutex_t lock;                                   /* of `memory` */
  struct fake_memory *memory;
  char signal_stack[65536]; /* of the engine */
};

extern const tn_env fake_env;

/* Makes the engine of a device run its waiting work soon. Takes a lock of its own. */
void fake_wake(int device);

CUresult fake_context_current(fake_call *call);
/* NULL: no context of that device is retained. */
fake_context *fake_context_of_device(int device);
/* Releasing a context frees and reports the objects that are left, by file. */
void fake_streams_close(fake_context *context);
void fake_events_close(fake_context *context);
void fake_modules_close(fake_context *context);
void fake_graphs_close(fake_context *context);
/* Logs that an object is left, unless a fault has ended the context. */
void fake_leak(const fake_context *context, const char *format, ...) FAKE_PRINTF(2, 3);

/* ---- memory.c: allocations
 * -------------------------------------------------------------------------------------- */

typedef struct fake_block {
  char *address;       /* the device's, where the host faults; or of pinned memory */
  char *real;          /* the same bytes for the engine's copies */
  size_t bytes, whole; /* whole: rounded up to pages */
  uint64_t number;
  bool device;
  bool shown; /* of the device: accessible at `address` */
} fake_block;

struct fake_memory *fake_memory_open(void);
void fake_memory_close(fake_context *context);
/* Makes device memory accessible, or not, at its device addresses. */
void fake_memory_show(fake_context *context, bool accessible);
/* A copy of the live block that contains the address; false: none. */
bool fake_memory_find(fake_context *context, const void *address, fake_block *block);
/* "byte 4100 of allocation 3 of 4096 bytes", or where else an address lies. */
void fake_memory_describe(fake_context *context, const void *address, char *text, size_t size);
/* Whether [address, address + bytes) lies in one device allocation; logs and returns
 * CUDA_ERROR_INVALID_VALUE. *real: the bytes for the engine. */
CUresult fake_memory_check(const fake_call *call, CUdeviceptr address, size_t bytes, const char *what,
                           void **real);
/* Whether it is pinned memory, or memory that the driver does not know; logs and refuses memory of a device,
 * and a range that leaves its pinned block. */
CUresult fake_memory_check_host(const fake_call *call, const void *address, size_t bytes, const char *what,
                                bool *pinned);

/* ---- streams.c, work.c: enqueuing
 * ------------------------------------------------------------------------------- */

struct fake_stream {
  fake_context *context;
  CUstream handle;
  uint64_t number;
  tn_sim_stream *sim;
  fake_capture *capture;          /* that it is part of */
  struct fake_work *first, *last; /* enqueued, in order */
};

/* The live stream of a handle; refuses default streams. */
CUresult fake_stream_find(const fake_call *call, CUstream handle, fake_stream **stream);
/* The same, of the current context. */
CUresult fake_stream_find_here(const fake_call *call, CUstream handle, fake_stream **stream);

/* The same once it has room for more work. */
CUresult fake_stream_for_work(const fake_call *call, CUstream handle, fake_stream **stream);

enum { FAKE_WHY = 512 };

enum { FAKE_PENDING = -2 };

/* A body returns 0; FAKE_PENDING: it is called again later; -1: a fault, with a reason in `why` (a buffer of
 * FAKE_WHY bytes), which is logged; a CUresult: the failure that a test has asked for. */
typedef int (*fake_body)(void *arg, char *why);

typedef struct fake_task {
  const char *name; /* for messages; copied */
  fake_body body;
  const void *arg; /* copied */
  size_t bytes;
  bool computes;              /* device memory is accessible while it runs, and a fault in it is caught */
  void (*release)(void *arg); /* NULL, or called when no graph has the captured task any more */
} fake_task;

/* Enqueues on a stream, or records in its capture. */
CUresult fake_push(const fake_call *call, fake_stream *stream, const fake_task *task);
void fake_works_free(struct fake_work *first);

/* ---- faults.c
 * --------------------------------------------------------------------------------------------------- */

/* Calls body(arg, why) on the engine of a context. A fault in it ends it: returns -1 and says where in `why`.
 */
int fake_guard(fake_context *context, fake_body body, void *arg, char *why);
void fake_faults_open(void);

/* ---- events.c
 * --------------------------------------------------------------------------------------------------- */

typedef struct fake_event {
  fake_context *context;
  CUevent handle;
  uint64_t number;
  unsigned flags;
  tn_sim_event *sim;
} fake_event;

CUresult fake_event_find(const fake_call *call, CUevent handle, fake_event **event);

/* ---- capture.c, graphs.c
 * ---------------------------------------------------------------------------------------- */

struct fake_capture {
  fake_capture *next;
  fake_context *context;
  fake_stream *origin;
  CUstreamCaptureMode mode;
  pthread_t thread;
  bool invalid;
  tn_sim_capture *sim;
  struct fake_work *works;
  size_t nodes;
};

/* Refuses an operation that no capture may see, and makes the capture invalid. */
CUresult fake_capture_spoil(const fake_call *call, fake_capture *capture, CUresult result, const char *format,
                            ...) FAKE_PRINTF(4, 5);
/* FAKE_UNSAFE. */
CUresult fake_capture_forbids(const fake_call *call);
/* A wait for a stream, or for everything of a context (stream NULL), that would see a capture. */
CUresult fake_capture_forbids_wait(const fake_call *call, const fake_context *context,
                                   const fake_stream *stream);
/* Whether any stream captures. Without the lock. */
bool fake_captures_active(void);
CUresult fake_capture_check(const fake_call *call, const fake_stream *stream);
/* The capture that has the event's last record; NULL: none, or it has ended. */
fake_capture *fake_capture_of_event(const fake_event *event);
/* Refuses an event whose last record is in a capture. */
CUresult fake_capture_refuse_event(const fake_call *call, const fake_event *event);
void fake_captures_close(fake_context *context);
/* Directs work of a stream to its capture until fake_capture_leave. */
void fake_capture_aim(const fake_stream *stream);
void fake_capture_leave(const fake_stream *stream);
/* Takes over the ended capture. */
CUresult fake_graph_new(const fake_call *call, const fake_capture *capture, CUgraph *graph);
