/* core/tensor/tensor.h: private to core/tensor: devices in an application's hands, and tensors on them.
 *
 *   device.c     opening, waiting, describing
 *   tensor.c     tensors and views; who keeps memory alive
 *   transfer.c   elements between tensors, and to and from the host
 *   call.c       an op under construction, and its run
 *   apply.c      an op from one text
 *   cache.c      which calls have been compiled
 *   one_op.c     a program of one op, or of its gradient */
#ifndef TN_CORE_TENSOR_TENSOR_H
#define TN_CORE_TENSOR_TENSOR_H

#include "core/exec/device/device.h"
#include "core/plugin/context.h"
#include "core/tensor/call_cache.h"
#include "tenon/tensor.h"

/* What stands behind the device of an application. */
typedef struct tn_device_use {
  tn_context *context;
  struct tn_op_table *ops; /* the context's */
  const char *backend;     /* as it was asked for */
  int32_t index;
  int64_t users; /* the application's handle, and every memory and transfer */
  bool busy;     /* something was enqueued that nobody has waited for */
  tn_call_cache cache;
} tn_device_use;

/* A copy between two devices that may still be under way, kept with the memory that must not be touched
 * before it is over. */
typedef struct tn_crossing {
  tn_device *other; /* whose stream it runs on; NULL: none */
  void *event;      /* of `other`: the copy is done */
  void *staging;    /* of `other`; NULL: the copy goes directly. Else its second half is still to do: */
  void *to;
  int64_t bytes;
} tn_crossing;

/* Memory that tensors share. */
typedef struct tn_storage {
  tn_device *device;
  int64_t users; /* tensors */
  void *address;
  int64_t bytes;
  bool owned;
  tn_crossing pending;
} tn_storage;

/* Storage axis k holds dimension order[k]. */
struct tn_tensor {
  tn_env env; /* shares the device's slot */
  tn_storage *storage;
  tn_type type;
  bool permuted; /* order is not 0, 1, 2 ... */
  int32_t order[TN_MAX_RANK];
  char *data;
};

static inline tn_device *tn_tensor_on(const tn_tensor *t) { return t->storage->device; }

/* device.c */
void tn_device_keep(tn_device *device);
void tn_device_drop(tn_device *device);
/* Everything is enqueued here, so that work on one device is in order. */
static inline void *tn_device_stream(const tn_device *device) { return device->streams[TN_STREAM_COMPUTE]; }

/* tensor.c: a type that a tensor can have. */
tn_status tn_tensor_check_type(const void *handle, const tn_type *type);
/* As tn_tensor_new, but the contents are whatever they are. */
tn_status tn_tensor_make(tn_device *device, const tn_type *type, tn_tensor **tensor);
/* The type of the elements in the order in which they lie. */
tn_type tn_tensor_stored_type(const tn_type *type, const int32_t *order);

/* transfer.c: waits for copies between devices that the memory takes part in. */
tn_status tn_storage_settle(tn_storage *storage);

#endif
