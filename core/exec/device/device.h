/* core/exec/device/device.h: a device in use: backend, device object, streams, and a count of its memory.
 * Everything that the backend or a kernel says goes to the device's own env. */
#ifndef TN_CORE_EXEC_DEVICE_DEVICE_H
#define TN_CORE_EXEC_DEVICE_DEVICE_H

#include "core/compile/cover.h"
#include "core/config/options/options.h"

typedef struct tn_device {
  tn_env env; /* its own error record: launches report here */
  tn_error_record record;
  tn_arena memory;             /* of options and names */
  const tn_backend *backend;   /* of the family */
  const tn_backend *extension; /* asked for by name; NULL: the family itself was */
  const tn_backend *team;      /* whose `parallel` runs: the backend's, or the extension's; may be NULL */
  void *self, *extension_self; /* the backends' objects */
  int32_t index;
  void *device;
  void *streams[TN_STREAMS];
  tn_target target;
  int64_t bytes, peak_bytes; /* asked of memory_new, minus deletes */
  bool uncaptured;           /* as the request says */
  int32_t count;             /* how many devices the backend has */
  tn_ints pin;               /* processors of its team's threads, the launching one first; none: not bound */
  struct tn_tune *tune;      /* measures variants (tune.h); NULL: nobody does */
  struct tn_comm *comm;      /* its part in a communicator (collective.h); NULL: it is alone */
  /* Does on the host what this one cannot; not started before it is needed. NULL: there is none. */
  struct tn_device *fallback;
  struct tn_device_use *use; /* core/tensor's, where an application opened the device; NULL inside a run */
} tn_device;

/* What becomes of an op that the device cannot do. */
enum {
  TN_FALLBACK_NONE = 0,  /* an error */
  TN_FALLBACK_ERROR = 1, /* an error, which says whether a fallback could do it */
  TN_FALLBACK_WARN = 2,
  TN_FALLBACK_ALLOW = 3 /* as WARN, but whoever compiles says nothing */
};

typedef struct tn_device_request {
  const char *const *names;
  int32_t n_names;
  int32_t index;   /* which device */
  int32_t threads; /* 0: all processors */
  /* Sets what [backend.NAME] says about options->item, which is filled with defaults. NULL: nothing. */
  tn_status (*configure)(tn_env *env, void *context, tn_options *options);
  void *context;
  /* TN_FALLBACK_...: unless none, the first of the names behind the one that is opened, and of `reserve`
   * (may be NULL), that stands for another family in host memory becomes the device's fallback. */
  int32_t fallback;
  const char *reserve;
  bool uncaptured; /* programs are launched one by one, even where the device could replay them */
  tn_ints pin;     /* processors for the threads of a backend that has the option; none: not bound */
} tn_device_request;

/* Opens the first backend of `names` that can be used ("cuda", "onednn", "cpu"); an extension brings
 * its family. Reasons for those passed over are logged, or are the error when none is left. */
tn_status tn_device_create(tn_env *env, tn_registry *registry, const tn_device_request *request,
                           tn_device **device);
void tn_device_destroy(tn_device *device);

/* Opens a fallback's device and streams, which nobody asked for so far. Nothing happens the second time. */
tn_status tn_device_start(tn_device *device);

/* What the team's `parallel` is called with. */
static inline void *tn_device_team_object(const tn_device *device) {
  bool extends = device->team != NULL && device->team == device->extension;
  return extends ? device->extension_self : device->device;
}

/* Asks a kernel to prepare for one use on the device; *plan stays as it is where the kernel has nothing to.
 */
tn_status tn_device_prepare(tn_device *device, const tn_kernel *kernel, const tn_match *match,
                            const tn_choice *choice, const tn_layout *in, const tn_layout *out, void **plan);

/* Whether kernels of the family are launched through the backend's `enqueue`. */
bool tn_device_is_foreign(const tn_device *device, const char *family);

/* Puts a kernel's launch, or its fold, on the launch's stream. */
static inline tn_status tn_device_enqueue(tn_device *device, bool foreign, tn_status (*launch)(tn_launch *l),
                                          tn_launch *l) {
  return foreign ? device->backend->enqueue(&device->env, l->stream, launch, l) : launch(l);
}

/* What was asked of the backend is counted. No bytes: a NULL address. The text of a failure is in the
 * device's env. */
tn_status tn_device_memory(tn_device *device, int32_t kind, int64_t bytes, void **address);
void tn_device_memory_free(tn_device *device, int32_t kind, void *address, int64_t bytes);

#endif
