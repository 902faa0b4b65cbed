/* core/exec/device/device.h: an open device: backend, device object, streams, fallback, and a count of its
 * memory. Messages of the backend and of kernels go to the device's own env. */
#pragma once

#include <sys/types.h>

#include "core/compile/kernels/group.h"
#include "core/compile/kernels/target.h"
#include "core/plugin/registry.h"
#include "core/config/options/options.h"

typedef struct tn_device {
  tn_env env; /* with an error record of its own, to which launches report */
  tn_error_record record;
  tn_arena memory;                             /* of options and names */
  const tn_backend *backend;                   /* of the family */
  const tn_backend *extension;                 /* if the name is that of an extension; else NULL */
  void *self, *extension_self;                 /* the backends' objects; self also of open_described */
  const char *libraries, *extension_libraries; /* "oneDNN 2.6.3"; NULL: the backend is not open */
  int32_t index;
  void *device; /* NULL: not open */
  void *streams[TN_STREAMS];
  tn_target target;
  int64_t bytes, peak_bytes; /* allocated now, and at most so far */
  int64_t staging_bytes;     /* of bytes: host memory */
  int64_t offload_bytes;     /* beside these: host memory of offloaded values */
  int64_t used_bytes; /* of the device when it had been opened: by the driver and by other processes; -1:
                         unknown */
  bool uncaptured;    /* of the request */
  const char *offload_folder; /* of the request, in `memory` */
  int32_t count;              /* devices of the backend */
  tn_ints pin; /* processors of the team's threads, the launching thread first; empty: not bound */
  void (*close_tuner)(struct tn_device *device); /* frees target.tuner (tune/measure.h); NULL: none is set */
  struct tn_comm *comm;              /* its communicator (collective.h); NULL: it is the only device */
  struct tn_flight *flight;          /* of its rank (flight_recorder.h); NULL: there are no other ranks */
  const void *comm_options;          /* those of target.communicator */
  struct tn_comm_block *comm_blocks; /* memory of that communicator, the oldest first (collective.c) */
  /* Runs ops for which this device has no kernel, on the host; started when first needed. May be NULL. */
  struct tn_device *fallback;
  /* The described device whose kernels this one, of a backend that simulates devices, rehearses; NULL: it
   * computes. */
  struct tn_device *rehearsed;
  const char *passed_over;   /* the reasons against the names before its own, "; " between; "" */
  struct tn_device_use *use; /* of core/tensor, for a device that an application opened; NULL inside a run */
  /* Of process.c: the process that opened it; a page that is 0 in its children, or NULL; and the backend that
   * takes the place of `backend` there. */
  pid_t process;
  char *own_page;
  tn_backend lost;
} tn_device;

/* The treatment of an op for which the device has no kernel. */
enum {
  TN_FALLBACK_NONE = 0,  /* an error */
  TN_FALLBACK_ERROR = 1, /* an error, whose message says whether a fallback has a kernel */
  TN_FALLBACK_WARN = 2,
  TN_FALLBACK_ALLOW = 3 /* as WARN, without the warning */
};

typedef struct tn_device_request {
  const char *const *names;
  int32_t n_names;
  int32_t index;   /* of the device */
  int32_t threads; /* 0: all processors */
  /* Sets the options of [backend.NAME] for options->item, which hold the defaults. May be NULL. */
  tn_status (*configure)(tn_env *env, void *context, tn_options *options);
  void *context;
  /* TN_FALLBACK_...: with NONE there is no fallback; otherwise it is the first backend of another family in
   * host memory among the names after the one that is opened, and then `reserve` (may be NULL). */
  int32_t fallback;
  const char *reserve;
  bool uncaptured;            /* launches are enqueued one by one, even where the device supports capture */
  tn_ints pin;                /* processors for the threads of a backend with that option; empty: not bound */
  const char *offload_folder; /* a folder for files of offloaded values; NULL: memory of the host does */
  bool automatic;             /* `auto` chose names: the reasons against them are no warnings */
  const char *cache;          /* the folder under which backends have folders of their own; NULL: none */
  bool closed; /* the device is described and not opened: programs can be compiled for it, and not run */
  bool deterministic; /* of the targets of the device and of its fallback */
  tn_words without;   /* the same; lives as long as the device */
  /* Chooses the index when the number of devices is known, in place of `index`. NULL: does not. */
  int32_t (*choose)(void *context, int32_t count);
} tn_device_request;

/* Opens the first usable backend of `names` ("cuda", "onednn", "cpu"); for an extension, its family too. The
 * reasons against the others are logged; if no backend is usable they are the error message. */
tn_status tn_device_create(tn_env *env, tn_registry *registry, const tn_device_request *request,
                           tn_device **device);
void tn_device_destroy(tn_device *device);

/* absent_device.c: a device for which programs can be compiled and not run: a file (device_file.h) has its
 * properties. Of the request it uses the fallback. Messages begin with the file and the line. */
tn_status tn_device_from_file(tn_env *env, tn_registry *registry, const tn_device_request *request,
                              const char *path, tn_device **device);

/* rehearsed_device.c: a device of the first backend with an option `rehearse`, which runs programs compiled
 * for the described one: kernels and collectives take their predicted times, and compute nothing. Nothing is
 * captured. */
tn_status tn_device_rehearse(tn_env *env, tn_registry *registry, const tn_device_request *request,
                             const char *path, tn_device **device);

/* Opens a backend that extends the device's family. */
tn_status tn_device_open_extension(tn_device *device, const tn_device_request *request,
                                   const tn_backend *extension);

/* Makes the object of an installed backend for queries about a device that a file describes, if the backend
 * has such objects. tn_device_destroy closes it by device->backend. */
tn_status tn_device_open_described(tn_device *device, const tn_device_request *request,
                                   const tn_backend *backend);

/* The fallback that the request asks for, if there is one. next: index of the first name to try. */
tn_status tn_device_find_fallback(tn_env *env, tn_registry *registry, const tn_device_request *request,
                                  int32_t next, tn_device *device);

/* Opens the device and streams of a fallback, unless they are open. */
tn_status tn_device_start(tn_device *device);

/* process.c: TN_EUNAVAILABLE in a child of the process that opened the device, after fork(); from then on the
 * device's callbacks fail. Calls that begin work, or that end objects, check it first. */
tn_status tn_device_check_owner(tn_device *device);
static inline tn_status tn_device_check_process(tn_device *device) {
  bool own = device->own_page != NULL && *(const volatile char *)device->own_page != 0;
  return own ? TN_OK : tn_device_check_owner(device);
}
/* The calling process becomes the owner. */
void tn_device_own(tn_device *device);
void tn_device_disown(tn_device *device);

/* Whether launches are captured and replayed. */
static inline bool tn_device_captures(const tn_device *device) {
  return !device->uncaptured && device->backend->capture != NULL;
}

/* The name by which it was opened: of the extension, or of the family. */
static inline const char *tn_device_name(const tn_device *device) {
  return device->extension != NULL ? device->extension->item.name : device->backend->item.name;
}

/* The libraries of the backend by whose name it was opened; "": none is known. */
static inline const char *tn_device_libraries(const tn_device *device) {
  const char *text = device->extension != NULL ? device->extension_libraries : device->libraries;
  return text != NULL ? text : "";
}

/* Library number `index` of that backend, with its file; false: there are no more. */
bool tn_device_library_at(tn_device *device, int32_t index, tn_backend_library *library);

/* Prepares a kernel for one use on the device, whose number tn_device_finish_prepare may report. *prepared is
 * left unchanged for a kernel without prepare. */
tn_status tn_device_prepare(tn_device *device, const tn_kernel *kernel, const tn_match *match,
                            const tn_choice *choice, const tn_layout *in, const tn_layout *out, int32_t use,
                            void **prepared);
/* The memory of a device, in bytes, by its use. */
typedef struct tn_device_memory_use {
  int64_t all, others, allocated, libraries, free; /* others: the driver and other processes */
} tn_device_memory_use;
/* false: the backend does not say. */
bool tn_device_read_memory_use(tn_device *device, tn_device_memory_use *use);

/* Ends what preparing has begun; required before a prepared kernel is launched. On failure *declined is the
 * use that it is about, or -1; TN_EUNSUPPORTED with a use: its kernel declines, and the call is repeated for
 * the others. */
tn_status tn_device_finish_prepare(tn_device *device, int32_t *declined);

/* Whether kernels of the family are launched by the backend's `enqueue`. */
bool tn_device_is_foreign(const tn_device *device, const char *family);

/* Enqueues a kernel's launch or fold on the launch's stream. */
static inline tn_status tn_device_enqueue(tn_device *device, bool foreign, tn_status (*launch)(tn_launch *l),
                                          tn_launch *l) {
  return foreign ? device->backend->enqueue(&device->env, l->stream, launch, l) : launch(l);
}

/* Allocates memory of a kind (TN_MEMORY_...) and counts it. 0 bytes: *address is NULL. The message of a
 * failure is in the device's env. */
tn_status tn_device_memory(tn_device *device, int32_t kind, int64_t bytes, void **address);
void tn_device_memory_free(tn_device *device, int32_t kind, void *address, int64_t bytes);
/* Host memory for offloaded values, which is counted by itself: it takes the place of memory of the device.
 * With offload_folder it is a mapped file, of zeros. */
bool tn_device_offloads_to_file(const tn_device *device);
tn_status tn_device_offload_memory(tn_device *device, int64_t bytes, void **address);
void tn_device_offload_memory_free(tn_device *device, void *address, int64_t bytes);
/* Counts memory that another part has allocated, or with bytes < 0 freed. */
void tn_device_count_memory(tn_device *device, int32_t kind, int64_t bytes);
