/* tenon/plugin/backend.h: devices of a family, or an extension of another family. docs/plugins/backend.md
 * leads through it with an example.
 *
 * Life cycle: open -> count -> properties -> device_open -> memory, streams, events, launches -> device_close
 * -> close. A backend is opened once for every device in use, and once more where somebody only asks what
 * there is, so several of its objects may live in one process, on several threads. Whoever creates destroys,
 * through this table; what fails to create leaves NULL, and what destroys gets what was created, never NULL.
 *
 * Threads. All calls about one device come from one thread at a time: the one that compiles and launches.
 * Different devices may be served by different threads at once. `parallel` and `enqueue` apart, no callback
 * is called from a thread of the backend's own.
 *
 * While steps run the launching thread must not be held up: event_record, event_await, copy, fill_zero,
 * enqueue and capture_launch enqueue and return. They ask for no memory and take no lock; where a queue is
 * full they may wait for room. event_wait and stream_wait are the only calls that wait for work.
 *
 * Handles. The env given to open and to device_open stays valid until the matching close, so the object
 * may keep a copy, to free its memory through. Others are for the call. A handle is used by one thread at a
 * time: threads of the backend's own keep their messages until the host calls.
 *
 * Addresses. A device address is a void * that only the device can read, unless its properties say
 * host_addressable. The host does arithmetic on it and nothing else.
 *
 * Time. Work on one stream runs in order. Work on different streams is ordered by events only.
 *
 * Errors. A call that fails returns a code and leaves the reason in env. A piece of work that fails makes its
 * stream sticky: nothing more is done there, and every later call on it returns TN_EDEVICE and the reason, as
 * do waits for events recorded behind the failure. A backend may let it stick to the whole device; then waits
 * for events recorded before may fail, too. Waits
 * still return only when nothing runs any more, since memory is given back after them. */
#ifndef TENON_PLUGIN_BACKEND_H
#define TENON_PLUGIN_BACKEND_H

#include "tenon/plugin/kernel.h"
#include "tenon/plugin/plugin.h"

TN_BEGIN_C

/* What a stream is for: a device has one of each, made by stream_new. */
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

/* Where the two ends of a copy lie. */
enum { TN_COPY_TO_DEVICE = 0, TN_COPY_TO_HOST = 1, TN_COPY_ON_DEVICE = 2 };

typedef struct tn_backend {
  tn_item item;
  /* NULL: the item's name is a family. Else the name of the family it extends: no devices of its
   * own, kernels with .family = its name, run on that family's devices and preferred there. */
  const char *extends;
  /* Families whose kernels run on these devices too, comma-separated ("cpu"); NULL: none. */
  const char *accepts;

  /* Options are filled and stay until close. TN_EUNAVAILABLE and the reason: it cannot be used here, and the
   * host goes on to the next backend of [backend] use. *backend may be anything but NULL. */
  tn_status (*open)(tn_env *env, const void *options, void **backend);
  void (*close)(tn_env *env, void *backend);
  /* How many devices there are; 0 with TN_EUNAVAILABLE and the reason when none can be used. */
  tn_status (*count)(tn_env *env, void *backend, int32_t *count);
  /* Of device `index`, 0 <= index < count; nothing is taken into use. */
  tn_status (*properties)(tn_env *env, void *backend, int32_t index, tn_device_properties *properties);
  tn_status (*device_open)(tn_env *env, void *backend, int32_t index, void **device);
  /* After its memory, streams and events have been deleted. */
  void (*device_close)(tn_env *env, void *device);

  /* At least 64-byte aligned, contents undefined. bytes > 0. TN_ENOMEM where it does not fit; the text says
   * how much there is. Before the first step only, and where tensors are made. */
  tn_status (*memory_new)(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address);
  /* `bytes` as it was asked for. The host has waited for all work that uses the memory. */
  void (*memory_delete)(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes);

  tn_status (*stream_new)(tn_env *env, void *device, int32_t role, void **stream);
  /* The stream has been waited for. */
  void (*stream_delete)(tn_env *env, void *stream);
  /* Blocks until all work on the stream is done, or none is left to do; the sticky error if there is one. */
  tn_status (*stream_wait)(tn_env *env, void *stream);

  /* One event is recorded again and again; whoever awaits or waits means the last record before the call. */
  tn_status (*event_new)(tn_env *env, void *device, void **event);
  /* Nobody awaits it any more. */
  void (*event_delete)(tn_env *env, void *event);
  tn_status (*event_record)(tn_env *env, void *event, void *stream);
  /* The stream goes on only when the event's last record is done. Does not block the caller. An event never
   * recorded is done. Stream and event are of the same device. */
  tn_status (*event_await)(tn_env *env, void *event, void *stream);
  /* Blocks the caller. An event never recorded is done. */
  tn_status (*event_wait)(tn_env *env, void *event);

  /* bytes may be 0, here and in fill_zero; the two ends do not overlap. The host's end is staging memory or
   * any other of the process. It stays as it is until the copy is done: the host waits for an event or the
   * stream before it reads what was copied, writes what is being copied, or frees either. The device's end
   * may be inside a block. */
  tn_status (*copy)(tn_env *env, void *stream, int32_t direction, void *to, const void *from, uint64_t bytes);
  tn_status (*fill_zero)(tn_env *env, void *stream, void *address, uint64_t bytes);

  /* Beside `accepts`: whether a foreign family's kernel can do a match on these devices; TN_EUNSUPPORTED
   * and the reason where it cannot, which `tenon plan` shows. Asked while compiling, perhaps before any
   * device is open. NULL: always. */
  tn_status (*takes)(tn_env *env, void *backend, const tn_kernel *kernel, const tn_match *match);

  /* Beside `accepts`: runs a launch of a foreign family's kernel when the stream gets there. `l`, its views
   * and its name stay as they are until the stream has been waited for, captured ones until the capture is
   * deleted, and so do those of the family's own kernels; the backend passes `launch` a copy whose addresses
   * the kernel can dereference, and reports what it returns through the stream. The copy's env must be one
   * for the thread that it runs on: a table of the backend's own, with `fail`, `log` and `parallel` that work
   * there (a copy of the host's, with these replaced). NULL: the memory is host_addressable, and the kernel
   * runs at once. */
  tn_status (*enqueue)(tn_env *env, void *stream, tn_status (*launch)(tn_launch *l), tn_launch *l);

  /* Devices that run kernels on the host: tn_parallel ends here. `device` is of this family; an
   * extension gets what its own open made. Returns when all chunks are done. May be called from several
   * threads at once, and from inside a chunk. NULL: chunks run one after the other. */
  void (*parallel)(tn_env *env, void *device, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                   void *arg);

  /* Optional: record everything enqueued on the device's streams between begin and end, and run it
   * again with one call. All four or none. Nothing runs while it is recorded. Work begins on `stream`, which
   * others join by awaiting an event of the capture, and it ends there: `stream` awaits them. Events cannot
   * cross the border. Work enqueued before goes on; on streams that have not joined nothing is enqueued
   * meanwhile. What a backend cannot record it refuses with TN_EUNSUPPORTED, in the call or in the
   * end; then the host logs the reason and launches one by one. After a begin there is always an end, also
   * where something between has failed. */
  tn_status (*capture_begin)(tn_env *env, void *device, void *stream);
  /* *capture: NULL when it fails. */
  tn_status (*capture_end)(tn_env *env, void *device, void *stream, void **capture);
  /* May be called again before the last run is done; runs of one capture follow each other. */
  tn_status (*capture_launch)(tn_env *env, void *capture, void *stream);
  /* The streams have been waited for. */
  void (*capture_delete)(tn_env *env, void *capture);

  /* Optional: vendor handles for foreign kernels ("cuda.1"), or NULL. Borrowed while the device is open. */
  void *(*native)(tn_env *env, void *device, void *stream, const char *name);

  /* Optional: the libraries that the speed of its kernels depends on, with the versions in use
   * ("oneDNN 2.6.3"), or NULL: with another version kernels are measured anew. An extension's, too, is
   * called. Borrowed until close. */
  const char *(*libraries)(tn_env *env, void *backend);
} tn_backend;

/* Options that the host sets for every backend that declares them, from [run]: `threads` (int), and beside it
 * `pin` (ints), the processors of a team's threads in their order, checked and no fewer than `threads`; none:
 * they are not bound. The first is the launching thread's, which the host binds while a program runs. */

TN_END_C
#endif
