/* tenon/plugin/backend.h: a backend: the devices of a family, or an extension of another family.
 * docs/plugins/backend.md develops an example.
 *
 * Life cycle: open -> count -> properties -> device_open -> memory, streams, events, launches -> device_close
 * -> close. The host opens a backend once for every device in use, and once more to list devices, so one
 * process may have several backend objects on several threads. The host deletes through this table every
 * object that it has created through it. A function that fails to create an object sets it to NULL; close and
 * delete never get NULL.
 *
 * Optional callbacks. A callback may be NULL; the host fills in a default when it loads the plugin. With none
 * at all the backend is one device that works in memory of the host, one thread, each call done when it
 * returns. A backend gives those in which it differs:
 *
 *   it has                             it gives
 *   state, or options to check         open; close where something is to be freed
 *   more than one device               count
 *   several threads, or an own name    properties
 *   state of a device                  device_open; device_close where something is to be freed
 *   memory of its own                  memory_new, memory_delete, copy, fill_zero and properties
 *   asynchronous streams               stream_wait, event_new, event_record, event_await, event_wait, copy
 * and fill_zero; stream_new, stream_delete, event_delete as needed work that can be captured capture,
 * capture_launch, capture_delete
 *
 * Those of memory, of streams and of capture come together or not at all. copy and fill_zero come together.
 *
 * Kernels. A backend needs kernels for copy, reorder and full, of its family or of one that it accepts, since
 * memory plans insert these ops. The host checks them when it opens a device, and names those that are
 * missing.
 *
 * Threads. Calls about one device come from one thread at a time, the one that compiles and launches.
 * Different devices may be used from different threads at once. Only `parallel`, and the `launch` given to
 * `enqueue`, are called on threads of the backend.
 *
 * Launching. event_record, event_await, copy, fill_zero, enqueue and capture_launch enqueue work and return.
 * They allocate no memory and take no lock; they may wait while a queue is full. event_wait and stream_wait
 * wait for work.
 *
 * fork(). In a child process the host calls nothing about devices that the parent opened, not even close. The
 * child may open the backend anew.
 *
 * Handles. The env of open and of device_open is valid until the matching close; a backend may keep a copy to
 * free memory with. Every other env is valid during the call. A handle is used by one thread at a time:
 * threads of the backend store their messages until the host calls.
 *
 * Addresses. A device address is a void * that only the device can dereference, unless the properties say
 * host_addressable. The host does pointer arithmetic on it.
 *
 * Order. Work on one stream runs in order. Events order work on different streams; nothing else does.
 *
 * Errors. A call that fails returns a code and leaves the reason in env. Work that fails stops its stream:
 * later work on it is dropped, and every later call on the stream returns TN_EDEVICE and the reason, as do
 * waits for events recorded after the failure. A backend may stop the whole device instead; then waits for
 * earlier events may fail as well. A wait returns only when no work of the stream runs any more, since the
 * host frees memory after it. */
#ifndef TENON_PLUGIN_BACKEND_H
#define TENON_PLUGIN_BACKEND_H

#include "tenon/plugin/kernel.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* Roles of streams. The host makes one stream of each role for a device. */
enum {
  TN_STREAM_COMPUTE = 0,
  TN_STREAM_COPY_IN = 1,
  TN_STREAM_COPY_OUT = 2,
  TN_STREAM_COMM = 3,
  TN_STREAMS = 4
};

/* Kinds of memory. */
enum {
  TN_MEMORY_DEVICE = 0, /* where kernels read and write */
  TN_MEMORY_STAGING = 1 /* host memory that the device copies from and to quickly ("pinned") */
};

/* Directions of copies. */
enum { TN_COPY_TO_DEVICE = 0, TN_COPY_TO_HOST = 1, TN_COPY_ON_DEVICE = 2 };

/* A library that a backend uses. */
typedef struct tn_backend_library {
  uint32_t struct_size;
  const char *name;    /* "oneDNN" */
  const char *version; /* "2.6.3" */
  const char *path;    /* the file that it was loaded from; NULL: unknown */
} tn_backend_library;

typedef struct tn_backend {
  tn_item item;
  /* NULL: the item's name is a family. Else the item is an extension of this family: it has no devices; the
   * kernels with its name as their family run on that family's devices and are preferred there. */
  const char *extends;
  /* Other families whose kernels run on these devices, comma-separated ("cpu"); NULL: no other family. */
  const char *accepts;

  /* `options` is the filled options struct, valid until close. TN_EUNAVAILABLE with a reason: the backend
   * cannot be used on this machine; the host tries the next backend of [backend] use. *backend must not be
   * NULL. Default: *backend is the options struct, which nothing frees. */
  tn_status (*open)(tn_env *env, const void *options, void **backend);
  void (*close)(tn_env *env, void *backend);
  /* Number of devices. TN_EUNAVAILABLE with a reason: there is no usable device. Default: 1. */
  tn_status (*count)(tn_env *env, void *backend, int32_t *count);
  /* Properties of device `index`, 0 <= index < count, without opening it. The members are 0 before the call.
   * Where memory_bytes stays 0 the host fills in the memory of the process: the machine's, or the limit of
   * its cgroups. Without memory_new, host_addressable must be 1. Default: host_addressable, 1 thread, the
   * host's memory. */
  tn_status (*properties)(tn_env *env, void *backend, int32_t index, tn_device_properties *properties);
  /* 0 <= index < count. Default: the device is the backend's object. */
  tn_status (*device_open)(tn_env *env, void *backend, int32_t index, void **device);
  /* The host has deleted all memory, streams, events and captures of the device. */
  void (*device_close)(tn_env *env, void *device);

  /* Allocates memory of a TN_MEMORY_... kind, aligned to 64 bytes or more, contents undefined; bytes > 0.
   * TN_ENOMEM: too little memory; the text says how much there is. Called before the first step and when
   * tensors are made. Default: memory of the host, from the application's allocator. */
  tn_status (*memory_new)(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address);
  /* `kind` and `bytes` are those of memory_new. The host has waited for all work that uses the memory. */
  void (*memory_delete)(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes);

  /* A stream for a TN_STREAM_... role. Default: the stream is the device. */
  tn_status (*stream_new)(tn_env *env, void *device, int32_t role, void **stream);
  /* The host has waited for the stream. */
  void (*stream_delete)(tn_env *env, void *stream);
  /* Blocks until all work on the stream is done or dropped; returns the error of work that failed. Default,
   * of this and of the events: all work is done. */
  tn_status (*stream_wait)(tn_env *env, void *stream);

  /* An event may be recorded many times; event_await and event_wait refer to the last record before the call.
   */
  tn_status (*event_new)(tn_env *env, void *device, void **event);
  /* No stream awaits the event any more. */
  void (*event_delete)(tn_env *env, void *event);
  tn_status (*event_record)(tn_env *env, void *event, void *stream);
  /* Makes later work on the stream run after the event's last record. Does not block the caller. No effect
   * for an event that was never recorded. Stream and event are of the same device. */
  tn_status (*event_await)(tn_env *env, void *event, void *stream);
  /* Blocks the caller until the event's last record is done; returns at once for an event never recorded. */
  tn_status (*event_wait)(tn_env *env, void *event);

  /* Enqueues a copy of `bytes` bytes in a TN_COPY_... direction. bytes may be 0, here and in fill_zero. The
   * ranges do not overlap. Host memory is staging memory or any other memory of the process; the host waits
   * for an event or for the stream before it reads, writes or frees it. Device addresses may point into a
   * block. Default, of copy and fill_zero: memmove and memset within the call. */
  tn_status (*copy)(tn_env *env, void *stream, int32_t direction, void *to, const void *from, uint64_t bytes);
  tn_status (*fill_zero)(tn_env *env, void *stream, void *address, uint64_t bytes);

  /* With `accepts`: TN_OK where a kernel of another family can compute a match on these devices;
   * TN_EUNSUPPORTED with a reason, which `tenon plan` shows, where it cannot. Called while compiling,
   * possibly before a device is open. NULL: always TN_OK. */
  tn_status (*takes)(tn_env *env, void *backend, const tn_kernel *kernel, const tn_match *match);

  /* With `accepts`: enqueues a launch of a kernel of another family. `l`, its views and its name stay
   * unchanged until the stream has been waited for, those of captured work until the capture is deleted; the
   * same holds for the family's own kernels. The backend calls `launch` with a copy of `l` whose addresses
   * the kernel can dereference, and treats a code other than TN_OK as failed work of the stream. The copy's
   * env is for the thread that it runs on: a table of the backend (a copy of the host's, struct_size set to
   * the size copied) whose `fail`, `log` and `parallel` work there. NULL: the memory is host_addressable, and
   * the host calls the kernel directly. */
  tn_status (*enqueue)(tn_env *env, void *stream, tn_status (*launch)(tn_launch *l), tn_launch *l);

  /* For devices that run kernels on the host: tn_parallel calls this. An extension has none: its kernels run
   * on the family's team. Returns when all chunks are done; threads of the team that have taken no chunk need
   * not have woken up. It may be called from several threads at once, and from inside a chunk, with the env
   * of the launch, so it records no error. NULL: chunks run one after the other. */
  void (*parallel)(tn_env *env, void *device, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                   void *arg);

  /* Optional, all three functions or none: capture the work that is enqueued on the device's streams by
   * work(arg), and run it later with one call. `capture` begins the capture on `stream`, calls work(arg)
   * once, on the same thread, and ends the capture, also after a failure of `work`, whose code it returns,
   * or TN_EUNSUPPORTED where the device goes on as if nothing had been captured.
   * Captured work does not run during the capture. Another stream joins when it awaits an event of the
   * capture; `stream` awaits all of them before `work` returns. An event recorded outside the capture is not
   * awaited inside it, and the reverse. Work enqueued before the capture runs on. No work is enqueued on
   * streams that have not joined. TN_EUNSUPPORTED, of a call inside `work` or of `capture`, for work that the
   * backend cannot capture: the host logs the reason and launches one by one; the run ends where the work has
   * collectives, which all ranks capture or none. *capture: the captured work, or NULL; where it is not NULL
   * after a failure, the host deletes it. */
  tn_status (*capture)(tn_env *env, void *device, void *stream, tn_status (*work)(void *arg), void *arg,
                       void **capture);
  /* Enqueues one run of the capture on `stream`. Runs of one capture follow each other; a run may be enqueued
   * before the previous one is done. */
  tn_status (*capture_launch)(tn_env *env, void *capture, void *stream);
  /* The host has waited for the streams. */
  void (*capture_delete)(tn_env *env, void *capture);

  /* Optional: a handle for kernels and communicators of other plugins, by the name of an interface
   * ("cuda.1"), valid while the device is open; NULL: no such interface. stream = NULL asks for the handle of
   * the device alone. It takes no lock and allocates nothing. */
  void *(*native)(tn_env *env, void *device, void *stream, const char *name);

  /* Optional: the libraries that the speed of the kernels depends on, one a call. Fills in `library` number
   * `index`, counted from 0, and returns 1; 0: there are no more. The host has set struct_size and zeroed the
   * rest; the texts are valid until close. Reports list them, and autotune measures again where a name or a
   * version differs. Called for extensions as well. */
  int32_t (*library)(tn_env *env, void *backend, int32_t index, tn_backend_library *library);

  /* Optional: whether the event's last record is done; returns at once. *done is 1 for an event that was
   * never recorded. After *done = 1 the host may do what it may after event_wait, and a failure is reported
   * as there. For devices that train together: the host polls the event instead of blocking in event_wait,
   * and asks the communicator in between whether a rank has failed. */
  tn_status (*event_done)(tn_env *env, void *event, int32_t *done);

  /* [backend] use = auto, the default, tries the backends with a preference above 0, the highest first, and
   * of equal ones the first by name. 0: never by auto, only by its name; for tests and simulations. By
   * convention a reference has 10, an extension more than its family (20), devices of their own 100. */
  int32_t preference;

  /* Optional: the seconds between the last records of two events, by the device's clock. Both are done, and
   * `from` was recorded before `to`, on the same stream. Autotune and profiles use it; without it they use
   * the host's clock, which includes the launching and the waiting. */
  tn_status (*event_seconds)(tn_env *env, void *from, void *to, double *seconds);

  /* Optional: ends work that `prepare` of kernels has begun on threads, such as compiling. The host calls it
   * after it has prepared kernels and before it launches one of them. TN_EUNSUPPORTED with a reason: the
   * kernel whose tn_prepare.use is now in *declined cannot be used; the host releases it and calls again, and
   * when the others are finished, it selects anew without the variant, as if `prepare` had declined. Any
   * other failure ends the run; *declined may name the kernel that it is about. The host has set it to -1. */
  tn_status (*finish_prepare)(tn_env *env, void *device, int32_t *declined);

  /* Optional: the bytes of device memory that are free now, and that the device has. Other processes, the
   * driver and libraries take some of it; reports of runs show how much. TN_EUNSUPPORTED: unknown. */
  tn_status (*memory_info)(tn_env *env, void *device, int64_t *free_bytes, int64_t *all_bytes);

  /* Optional: an object for the `query` of kernels alone, about a device that a file describes (`tenon plan
   * --device`). Options apply; no device and no driver is needed. Of the callbacks about a backend
   * the host calls only `better_policy` and `close` with it. NULL: such a query gets no object. */
  tn_status (*open_described)(tn_env *env, const void *options, void **backend);

  /* Optional: the precision policy under which these devices have kernels for an op ("conv2d") that they lack
   * under `policy` ("bf16"), or NULL. `tenon plan` plans a training step with such an op under both policies
   * and tells what the other one gives. `backend`: the object of open or open_described. */
  const char *(*better_policy)(tn_env *env, void *backend, const tn_device_properties *device,
                               const char *policy, const char *op);

  /* Optional, both or none: begin and end a range of what the host does, for the vendor's profiler, such as
   * NVTX for Nsight Systems. Ranges nest, and are those of the calling thread, which may be any. Names are of
   * programs ("train"), of launches ("conv1") and of waits ("wait for samples"), and valid during the call.
   * The host calls them always, so they cost next to nothing where no profiler is attached. */
  void (*range_begin)(void *device, const char *name);
  void (*range_end)(void *device);
} tn_backend;

/* Options that the host sets from [run] for every backend that declares them: `threads` (int), where the host
 * replaces 0 by the number of processors that the process may use (affinity and cgroups), before `open`; and
 * `pin` (ints), the processors of the team's threads in order, checked, at least `threads` of them; empty:
 * threads are not bound. The first processor is the launching thread's, which the host binds while a program
 * runs. And `cache` (text): a folder of the backend's own under the user's cache folder, for results that
 * later processes can use, such as compiled kernels. It may not exist: tn_make_folder makes it before the
 * first write. Several processes may use it at once; "": the backend has no folder. */

TN_END_C
#endif
