/* tenon/plugin/communicator.h: collectives over ranks, enqueued on a stream. docs/plugins/communicator.md
 * develops an example.
 *
 * Life cycle: identify (rank 0 only; the host sends its bytes to all ranks) -> open on every rank at once ->
 * run and await, on the thread of the stream, in the same order on every rank -> status and abort from any
 * thread -> close.
 *
 * Failure. A rank that does not come to a collective within timeout_s, or whose part fails, is named by
 * `status` on every other rank: TN_ECOMM, with the number of that rank. The host asks for it every 10 ms,
 * from another thread than the rank's, more often in every wait for a stream, and once more when the wait has
 * ended; after a failure it calls abort, and for a rank whose thread does not end it never calls close. A
 * collective that has failed ends as failed work of its stream, or, after abort, as work that is done with
 * undefined results. Order: sums are added in the same order every time, so results have the same bits. */
#ifndef TENON_PLUGIN_COMMUNICATOR_H
#define TENON_PLUGIN_COMMUNICATOR_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* Kinds of collectives, with the meaning of MPI 4.0, chapter 6, and NCCL. Reductions are TN_REDUCTION_...
 * (base.h). */
enum { TN_ALL_REDUCE = 0, TN_BROADCAST = 1, TN_REDUCE_SCATTER = 2, TN_ALL_GATHER = 3 };

/* "all_reduce", "broadcast", "reduce_scatter" or "all_gather"; "?" for an unknown kind. */
static inline const char *tn_collective_name(int32_t kind) {
  static const char *const name[] = {"all_reduce", "broadcast", "reduce_scatter", "all_gather"};
  return kind >= TN_ALL_REDUCE && kind <= TN_ALL_GATHER ? name[kind] : "?";
}

typedef struct tn_collective {
  uint32_t struct_size;
  int32_t kind, reduction, dtype; /* TN_ALL_REDUCE ..., TN_REDUCTION_..., TN_F32 ... */
  int32_t root;                   /* of a broadcast: the rank whose data all ranks get */
  int64_t count; /* elements of `from`; all_gather writes count * ranks, reduce_scatter count / ranks */
  /* Device addresses. A collective is in place where both are equal; all_gather, where `from` is the rank's
   * part of `to`; reduce_scatter, where `to` is the rank's part of `from`. */
  const void *from;
  void *to;
  const char *name; /* "all_reduce of bucket 2", for messages; valid until the stream was waited for, and of a
                       captured collective until the capture is deleted */
  double cost_s;    /* the predicted time, from the moment when all ranks have come; 0: unknown */
} tn_collective;

/* The device of a rank. The host keeps it, with its address, from open to close. */
typedef struct tn_comm_device tn_comm_device;
struct tn_comm_device {
  uint32_t struct_size;
  int32_t index; /* of the device in its backend */
  void *device;  /* the backend's device object, which only plugins of that backend can use */
  /* tn_backend.native of the device: the backend's own handle behind a stream object ("cuda.1"), or with
   * stream = NULL behind the device alone; valid while the device is open. NULL: the backend has no such
   * interface. On the rank's thread, in open and run; it takes no lock and allocates nothing. */
  void *(*native)(tn_env *env, const tn_comm_device *device, void *stream, const char *name);
};

/* The place of a rank in its run. A run has one process or several, on one host or several; each process has
 * one rank or several, which are neighbours in the order of ranks, each with a thread and a device of its
 * own.
 */
typedef struct tn_comm_place {
  uint32_t struct_size;
  int32_t rank, ranks;
  int32_t process, processes; /* of the run: the process of this rank, 0 <= process < processes */
  /* By which the processes of the run reach the host of this one: digits of IPv4 or IPv6, such as "10.0.0.2".
   * "" in a run of one process. */
  const char *address;
  double timeout_s; /* how long other ranks are waited for, in open and in collectives */
  /* Whether the run has failed meanwhile, as when a process has died: `open` then returns TN_ECOMM soon. From
   * any thread, until close. NULL: never. `run` is for this function. */
  int32_t (*has_failed)(const struct tn_comm_place *place);
  const void *run;
  /* Writes a proof over n bytes, a hash keyed by the token of the job, which all its processes know: by it
   * ranks know each other without sending a secret. The identity travels unencrypted, so it alone proves
   * nothing to a reader of the network. The bytes have a nonce of each side and a role in them, or an old
   * proof can be used again. From any thread, until close; NULL during `suits`. `job` is for this function.
   */
  void (*prove)(const struct tn_comm_place *place, const void *bytes, uint64_t n, uint8_t proof[32]);
  const void *job;
} tn_comm_place;

/* The library that a communicator uses. */
typedef struct tn_comm_library {
  uint32_t struct_size;
  char name[32], version[32]; /* "NCCL", "2.28.9" */
  char path[512];             /* the file that it was loaded from; "": unknown */
} tn_comm_library;

/* The place of a device in the order of its collectives. */
typedef struct tn_comm_position {
  uint32_t struct_size;
  int32_t inside; /* 1: the device has come to a collective that has not ended; 0: to none */
  uint64_t
      number;    /* of that collective, counted from 1 at open, each replay of a capture again; 0: unknown */
  char name[64]; /* its tn_collective.name; "": unknown */
} tn_comm_position;

typedef struct tn_communicator {
  tn_item item;
  const char *families;    /* families whose devices it serves, comma-separated */
  uint32_t identity_bytes; /* size of the identity, at least 1 */
  /* Writes identity_bytes bytes by which the ranks of one run find each other. `place` is that of rank 0. */
  tn_status (*identify)(tn_env *env, const void *options, const tn_comm_place *place, void *identity);
  /* Blocks until all ranks have called open, or place->timeout_s has passed. `options`, `device` and `place`
   * are valid until close. TN_EUNSUPPORTED with a reason: not for ranks in these places, such as those of
   * several processes. */
  tn_status (*open)(tn_env *env, const void *options, const tn_comm_device *device,
                    const tn_comm_place *place, const void *identity, void **communicator);
  /* The ranks of a process are closed one after another on one thread. The host has deleted the captures and
   * the memory of all of them before the first close, and closes their devices after the last one. */
  void (*close)(tn_env *env, void *communicator);
  /* Enqueues a collective on a stream of the device and returns. It allocates no memory, and does not wait
   * for other ranks unless the device is synchronous and `await` is NULL. `collective` is valid during the
   * call.
   * TN_EUNSUPPORTED with a reason: the communicator has no such collective. */
  tn_status (*run)(tn_env *env, void *communicator, const tn_collective *collective, void *stream);
  /* TN_OK, or TN_ECOMM with the rank that failed, or that has not come to a collective for timeout_s. It does
   * not wait. From any thread, with a handle of that thread. */
  tn_status (*status)(tn_env *env, void *communicator);
  /* Makes pending and later collectives of all ranks end soon, and `status` fail on all of them. From any
   * thread, with a handle of that thread. */
  void (*abort)(tn_env *env, void *communicator);
  /* 1: `run` may be called while the device captures its streams (tn_backend.capture). The collective
   * is then part of the capture, and every replay runs it once, at its place in the order of the rank's
   * collectives. 0: the host enqueues every collective in every run, between captured launches. */
  int32_t capturable;
  /* Optional, for synchronous devices, and not with `capturable`. `run` then returns before the collective
   * has ended, and the host calls await before anything reads its result or writes its operand or result: it
   * returns when the first n collectives that this rank has run, counted from 1 at open, have ended, or all
   * if they are fewer. Collectives take effect one after another, as on a stream: one may read the result of
   * the one before it. It blocks. A failure, also a rank that does not come in time, is TN_ECOMM as that of
   * `status`. After abort it returns soon, and the memory of collectives is not used any more. On the thread
   * of the stream. */
  tn_status (*await)(tn_env *env, void *communicator, uint64_t n);
  /* Optional. Whether `open` would serve ranks in such places, without waiting for any: TN_OK, or
   * TN_EUNSUPPORTED with a reason. The host asks where the user has named no communicator, on every process,
   * and all get the same answer; `place` has no address then. NULL: TN_OK. */
  tn_status (*suits)(tn_env *env, const void *options, const tn_comm_place *place);
  /* Optional: opens the library that `identify` and `open` would use, and tells it. The host has set
   * struct_size and zeroed the rest. TN_EUNAVAILABLE with a reason: the communicator cannot be used. */
  tn_status (*library)(tn_env *env, const void *options, tn_comm_library *library);
  /* Optional, all four or none: memory of the device for operands and results of collectives, such as memory
   * that other devices read directly. memory_new allocates, on the thread that opens the device, mostly
   * before `open`; the memory is aligned as that of the backend, and not zeroed. *address = NULL with TN_OK:
   * the host takes the backend's. `attach` tells the communicator of such a block, on the rank's thread,
   * after open and before the first run, on every rank in the same order with the same sizes, so it may be a
   * collective. The host calls detach and memory_delete before close, also after abort, when no captured
   * collective uses the block any more. */
  tn_status (*memory_new)(tn_env *env, const void *options, const tn_comm_device *device, uint64_t bytes,
                          void **address);
  void (*memory_delete)(tn_env *env, const void *options, const tn_comm_device *device, void *address,
                        uint64_t bytes);
  tn_status (*attach)(tn_env *env, void *communicator, void *address, uint64_t bytes);
  void (*detach)(tn_env *env, void *communicator, void *address, uint64_t bytes);
  /* Optional, for asynchronous devices, of which the host does not know where they are: the collective that
   * the device is in. The host has set struct_size and zeroed the rest. It asks every 10 ms, from another
   * thread than the rank's, to name a rank that does not come, and to find one that is slow. It does not
   * wait. TN_EUNSUPPORTED: unknown. */
  tn_status (*position)(tn_env *env, void *communicator, tn_comm_position *position);
} tn_communicator;

TN_END_C
#endif
