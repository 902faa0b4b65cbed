/* core/exec/collective.h: the communicator of a device, and collectives as steps of a program. */
#pragma once

#include "core/exec/bound_program.h"
#include "core/exec/flight_recorder.h"
#include "tenon/plugin/communicator.h"

typedef struct tn_comm {
  tn_env env; /* of open and close */
  tn_error_record record;
  tn_comm_device seat; /* what the communicator knows of the device */
  void *event;         /* of waits for a stream; NULL: the backend has no event_done */
  const tn_communicator *kind;
  void *self;
  tn_device *device;
  tn_comm_place place; /* what it knows of the rank */
  uint64_t begun;      /* collectives so far */
  /* The device is synchronous and `run` returns before the collective has ended, so the host awaits ends. */
  bool awaits;
  uint64_t ended; /* collectives whose end it has awaited */
} tn_comm;

typedef struct tn_comm_request {
  const tn_communicator *kind;
  const void *options;
  const void *identity;
  tn_comm_place place;
} tn_comm_request;

/* TN_EABI: the communicator lacks functions, or has some that exclude each other. */
tn_status tn_comm_check(tn_env *env, const tn_communicator *kind);
/* Of a communicator that was checked. Blocks until all ranks have joined. From then on programs on the device
 * may contain collectives. The message of a failure is in env. */
tn_status tn_comm_open(tn_env *env, tn_device *device, const tn_comm_request *request, tn_comm **comm);
/* Called after the device's executors were destroyed: their streams may hold collectives. Accepts NULL. */
void tn_comm_close(tn_comm *comm);
/* Called from any thread: collectives that wait for other ranks fail soon. Accepts NULL. */
void tn_comm_abort(tn_comm *comm);
/* Called from any thread: the communicator's state. Accepts NULL: TN_OK. */
tn_status tn_comm_status(tn_env *env, tn_comm *comm);
/* Called from any thread: the collective that the device is in. false: the communicator does not know.
 * Accepts NULL. */
bool tn_comm_where(tn_env *env, tn_comm *comm, tn_comm_position *position);
/* The collectives that the device has begun; 0: it has no communicator. */
uint64_t tn_comm_begun(const tn_device *device);
/* Returns when the first n of them have ended, where it is the host that waits for that; else at once, since
 * events order them. A failure is TN_ECOMM with a message in the device's env, and the collectives of all
 * ranks are given up. */
tn_status tn_comm_await(tn_device *device, uint64_t n);

/* Copies memory of rank 0's device to that of all ranks, and waits for it. `name` is for messages.
 * TN_EUNSUPPORTED, on all ranks: the communicator has no broadcast of this dtype. The message of a failure is
 * in the device's env. */
tn_status tn_comm_broadcast(tn_device *device, const char *name, int32_t dtype, int64_t count, void *address);

/* ---- memory ---- */

/* Memory in which collectives are fast, which the communicator of the target allocates, be it open or not.
 * *address is NULL with TN_OK where the device has no such memory. The message of a failure is in the
 * device's env. */
tn_status tn_comm_memory(tn_device *device, int64_t bytes, void **address);
/* false: the memory is not of the communicator. */
bool tn_comm_memory_free(tn_device *device, void *address, int64_t bytes);

/* ---- waits of the host for a device that may be one of several ---- */

/* As event_wait and stream_wait of the backend, with messages in the device's env. While they wait, and once
 * more after it, the communicator is asked for its state: TN_ECOMM if a rank has failed or does not answer,
 * and then the collectives of all ranks are given up. */
tn_status tn_device_wait_event(tn_device *device, void *event);
tn_status tn_device_wait_stream(tn_device *device, void *stream);

/* ---- for prepared_steps.c and bound_program.c ---- */

/* Prepares a step whose kernel is one of collectives; tn_collective_release frees it. */
tn_status tn_collective_prepare(tn_executor *e, const tn_program *program, const tn_step *step,
                                void **prepared);
void tn_collective_release(tn_executor *e, void *prepared);
/* Its description for the flight recorder; NULL: it has no elements, and does not run. */
const struct tn_flight_call *tn_collective_call(const void *prepared);
/* Its launch. Without a communicator the result equals the operand. */
tn_status tn_collective_launch(tn_launch *l);
