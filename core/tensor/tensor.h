/* core/tensor/tensor.h: private to core/tensor: devices and tensors of an application.
 *
 * The files, each of which calls only those above it:
 *   call_graph.c   the graph of one op, or of its gradient
 *   call_cache.c   compiled calls
 *   device.c       opens, waits for and describes devices
 *   storage.c      memory that tensors share
 *   tensor.c       tensors and views
 *   call_run.c     an op on tensors, from its signature to its run
 *   transfer.c     copies elements between tensors, and to and from the host
 *   call.c         an op under construction
 *   apply.c        an op from one text */
#pragma once

#include "core/exec/device/device.h"
#include "core/plugin/context.h"
#include "core/tensor/call_cache.h"
#include "tenon/tensor.h"

/* The part of a device that belongs to the application. */
typedef struct tn_device_use {
  tn_context *context;
  struct tn_op_table *ops; /* the context's */
  const char *backend;     /* the name it was opened by */
  int32_t index;
  int64_t users; /* the application's handle, every storage, and every pending copy */
  bool busy;     /* work was enqueued after the last wait */
  tn_call_cache cache;
} tn_device_use;

/* A copy between two devices that may still be under way. It is kept by the storage on the device that does
 * not run it. */
typedef struct tn_pending_copy {
  tn_device *other; /* whose stream runs the copy; NULL: there is no pending copy */
  void *event;      /* of `other`: the copy has ended */
  void *staging;    /* of `other`; NULL: a direct copy. Otherwise the second half goes from here: */
  void *to;
  int64_t bytes;
} tn_pending_copy;

/* Memory that tensors share. */
typedef struct tn_storage {
  tn_device *device;
  int64_t users; /* tensors */
  void *address;
  int64_t bytes;
  bool owned;
  tn_pending_copy pending;
} tn_storage;

/* Storage axis k holds dimension order[k]. */
struct tn_tensor {
  tn_env env; /* with the device's error record */
  tn_storage *storage;
  tn_type type;
  bool permuted; /* order is not 0, 1, 2 ... */
  int32_t order[TN_MAX_RANK];
  char *data;
};

static inline tn_device *tn_tensor_on(const tn_tensor *t) { return t->storage->device; }

/* ---- device.c ---- */

void tn_device_retain(tn_device *device);
void tn_device_release(tn_device *device);
/* All work is enqueued on this stream, so it is in order. */
static inline void *tn_device_stream(const tn_device *device) { return device->streams[TN_STREAM_COMPUTE]; }
/* Enqueues a copy. */
tn_status tn_device_copy(tn_device *device, int32_t direction, void *to, const void *from, int64_t bytes);

/* ---- storage.c ---- */

/* data: memory of the caller; NULL: allocates it. */
tn_status tn_storage_new(tn_device *device, int64_t bytes, void *data, tn_storage **storage);
void tn_storage_release(tn_storage *storage);
/* Waits for the pending copy, if there is one. */
tn_status tn_storage_wait(tn_storage *storage);
void tn_pending_copy_end(tn_pending_copy *pending);

/* ---- tensor.c ---- */

/* tn_tensor_new without the zero fill. */
tn_status tn_tensor_allocate(tn_device *device, const tn_type *type, tn_tensor **tensor);
