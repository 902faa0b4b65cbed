/* core/exec/device.h: a device in use: backend, device object, streams, and a count of its memory. */
#ifndef TN_CORE_EXEC_DEVICE_H
#define TN_CORE_EXEC_DEVICE_H

#include "core/compile/cover.h"

typedef struct tn_device {
  tn_env env;                 /* its own slot: launches report here */
  tn_slot slot;
  const tn_backend *backend;  /* of the family */
  const tn_backend *team;     /* whose `parallel` runs: the backend's, or an extension's; may be NULL */
  void *self;                 /* the backend's object */
  void *device;
  void *streams[TN_STREAMS];
  tn_target target;
  int64_t bytes, peak_bytes;  /* asked of memory_new, minus deletes */
} tn_device;

/* Opens the first backend of `names` that can be used ("cuda", "onednn", "cpu"); an extension brings
 * its family. Options come from [backend.NAME]. Reasons for those passed over are logged. */
typedef struct tn_device_request {
  const char *const *names;
  int32_t n_names;
  int32_t index;              /* which device */
  int32_t threads;            /* 0: all processors */
} tn_device_request;
tn_status tn_device_open(tn_env *env, tn_registry *registry, const tn_device_request *request, tn_device **device);
void tn_device_close(tn_device *device);

tn_status tn_device_memory(tn_device *device, int32_t kind, int64_t bytes, void **address);
void tn_device_memory_free(tn_device *device, int32_t kind, void *address, int64_t bytes);

#endif
