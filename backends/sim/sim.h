/* backends/sim/sim.h: the device, and the calls between the files of the backend. A simulated device runs on
 * the processor and behaves like a GPU: memory that only the device can address, asynchronous streams,
 * several devices.
 *
 * Threads. The host's thread puts work into the ring of a stream and returns; it allocates nothing and takes
 * no lock. Each device has one thread, the engine, which takes work from the heads of its streams in any
 * order that the events allow, and a team of threads behind tn_parallel. Host and engine share the rings (one
 * producer, one consumer), atomics and two signals. A lock protects the table of memory blocks; the host
 * takes it in memory_new and memory_delete only. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/sim/engine/signal.h"
#include "backends/sim/options.h"
#include "backends/sim/queue.h"
#include "backends/shared/team.h"
#include "tenon/plugin/backend.h"
#include "tenon/plugin/communicator.h"

extern const tn_backend tn_sim_backend;
extern const tn_communicator tn_sim_communicator;

typedef struct tn_sim_shadow tn_sim_shadow;

/* ---- the device --------------------------------------------------------------------------------- */

typedef struct tn_sim_backend_object {
  tn_env env;
  tn_api api; /* table for kernels on the engine (host_table.c) */
  tn_sim_options options;
  tn_sim_faults faults;
} tn_sim_backend_object;

typedef struct tn_sim_block {
  char *real;
  uint64_t bytes;
  int32_t kind;
  tn_sim_shadow *shadow; /* NULL: unchecked */
  /* The contents at the last copies from checked staging memory: other bytes show that the host has written
   * since. NULL: unchecked, or device memory. */
  char *copied;
} tn_sim_block;

/* A copy from or to host memory, and its position in a stream. */
typedef struct tn_sim_transfer {
  const void *host;
  uint64_t bytes;
  tn_sim_stream *stream;
  uint64_t position;
  bool writes; /* to the host memory */
} tn_sim_transfer;
enum { TN_SIM_TRANSFERS = 64 };

struct tn_sim_device {
  tn_env env;
  tn_sim_backend_object *backend;
  int32_t index;
  pthread_t engine;
  bool running;
  atomic_bool stop;
  tn_sim_signal work, progress; /* for the engine; from it */
  tn_sim_stream streams[TN_SIM_STREAMS];
  _Atomic(int32_t) n_streams;
  _Atomic(uint64_t) numbers;
  tn_sim_clock host;
  tn_sim_capture *capturing; /* NULL: work goes to the rings */
  uint64_t captures;         /* number of captures begun */
  int64_t launches, replays; /* the host's: kernels enqueued outside of captures; replays enqueued */
  _Atomic(int64_t) seen[TN_SIM_FAULTS];
  tn_sim_transfer transfers[TN_SIM_TRANSFERS]; /* the host's */
  uint32_t replaced;

  pthread_mutex_t lock; /* of the blocks and their shadows */
  tn_sim_block *blocks; /* by address */
  int32_t n_blocks, blocks_capacity;
  uint64_t bytes; /* of device memory in use */

  tn_team *team;
  tn_sim_native native;
  atomic_bool released; /* the fault `stall` is over */
  /* the engine's own */
  uint64_t round;                /* each rest begins a new one */
  double behind_s;               /* of a slow device: the time that its kernels have yet to take */
  bool stalled, hung;            /* the fault `stall`, or `hang`, has begun */
  uint64_t times[TN_SIM_CLOCKS]; /* work done, by index in clocks */
  tn_view *views;
  int32_t views_capacity;
  tn_sim_failure report; /* of the work that runs */
  uint64_t chance;
  uint64_t jitter;                  /* of a rehearsal: draws so far */
  int64_t copies_in, copies_beside; /* to the device; those that overtook older work of the compute stream */
  struct tn_sim_names *names;       /* of ops, for messages of the race detector */
};

/* ---- blocks.c ----------------------------------------------------------------------------------- */

enum { TN_SIM_ADDRESS_BITS = 48 }; /* of a host address; the bits above mark a device address */
bool tn_sim_is_far(const void *address);
void *tn_sim_far_address(const tn_sim_device *device, void *real);
/* The block that contains the range, or NULL; the lock must be held. */
tn_sim_block *tn_sim_block_find(tn_sim_device *device, const void *address, uint64_t bytes);
/* Adds a block to the table; the lock must be held. */
tn_status tn_sim_block_add(tn_env *env, tn_sim_device *device, const tn_sim_block *block);

/* ---- memory.c ----------------------------------------------------------------------------------- */

void tn_sim_memory_close(tn_sim_device *device);

/* ---- stream.c ----------------------------------------------------------------------------------- */

/* Puts a copy of `work` on the stream, or into the capture; *position (may be NULL): its position on the
 * stream. */
tn_status tn_sim_push(tn_env *env, tn_sim_stream *stream, const tn_sim_work *work, uint64_t *position);
/* Blocks until the stream has done the work up to `position`. */
void tn_sim_reach(tn_sim_stream *stream, uint64_t position);
/* Whether it has; lazy order: the work becomes wanted. */
bool tn_sim_reached(tn_sim_stream *stream, uint64_t position);
/* The handle of a device, or of one of its streams. */
void tn_sim_native_init(tn_sim_native *native, tn_sim_device *device, void *stream);
/* Blocks until the device has done all enqueued work, without joining clocks: an object that the host deletes
 * too early is reported by the race detector, and no thread accesses freed memory. */
void tn_sim_finish(tn_sim_device *device);
/* The stream's failure, moved to env; TN_OK if it has none. */
tn_status tn_sim_stream_status(tn_env *env, tn_sim_stream *stream);

/* ---- engine/engine.c, engine/work.c, work_name.c, failure.c --------------------------------------- */

void *tn_sim_engine(void *device);
/* Runs work on the engine. TN_SIM_PENDING: it is not done. The text of a failure is in device->report. */
tn_status tn_sim_work_run(tn_sim_queue *queue, tn_sim_work *work);
/* Whether the head of a queue can run now. */
bool tn_sim_work_ready(const tn_sim_queue *queue, const tn_sim_work *work);
/* "copy to device of 4096 bytes", "conv2d of conv1". */
void tn_sim_work_name(const tn_sim_work *work, char *text, size_t size);
/* The same without the number of bytes. */
const char *tn_sim_work_kind(const tn_sim_work *work);
/* Records a failure of a stream; later ones are dropped. */
void tn_sim_failure_set(tn_sim_failure *failure, tn_status code, const char *text);

/* ---- race.c ------------------------------------------------------------------------------------- */

/* Records the accesses of work to memory, at the queue's clock. TN_EDEVICE, with the text in device->report:
 * an earlier access conflicts and is not ordered before this one. */
tn_status tn_sim_race_check(tn_sim_queue *queue, const tn_sim_work *work);
/* A checksum. */
uint64_t tn_sim_sum(const void *bytes, uint64_t n);
/* A copy has written to memory of the host, whose bytes are from now on no write of the host. */
void tn_sim_race_copied(tn_sim_device *device, const tn_sim_work *work);
void tn_sim_names_delete(tn_sim_device *device);

/* ---- engine/rehearsal.c ------------------------------------------------------------------------- */

/* Runs work in a rehearsal: memory is left alone, and the time of the queue advances by that which the host
 * has predicted. */
tn_status tn_sim_rehearse(tn_sim_queue *queue, tn_sim_work *work);
static inline bool tn_sim_rehearses(const tn_sim_device *device) {
  return device->backend->options.rehearse != 0;
}

/* ---- host_table.c --------------------------------------------------------------------------------- */

/* The handle of kernels and tasks on the engine; failures go to device->report. */
tn_env tn_sim_engine_env(tn_sim_device *device);
void tn_sim_engine_table(const tn_api *host, tn_api *api);
