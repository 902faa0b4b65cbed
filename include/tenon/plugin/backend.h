/* tenon/plugin/backend.h: devices of a family, or an extension of another family.
 *
 * Life cycle: open (once per context) -> count -> properties -> device_open (once per device used)
 * -> memory, streams, events, launches -> device_close -> close. Creation and destruction come from
 * one thread at a time per device; copies, records and waits come from the thread that owns the
 * stream. Whoever creates destroys, through this table.
 *
 * Handles. The env given to open and to device_open stays valid until the matching close, so the object
 * may keep a copy, to free its memory through. Others are for the call.
 *
 * Addresses. A device address is a void * that only the device can read, unless its properties say
 * host_addressable. The host does arithmetic on it and nothing else.
 *
 * Time. Work on one stream runs in order. Work on different streams is ordered by events only. A
 * failed piece of work makes its stream sticky: every later call on it returns TN_EDEVICE. */
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

  tn_status (*open)(tn_env *env, const void *options, void **backend);
  void (*close)(void *backend, tn_env *env);
  /* How many devices there are; 0 with TN_EUNAVAILABLE and the reason when none can be used. */
  tn_status (*count)(void *backend, tn_env *env, int32_t *count);
  tn_status (*properties)(void *backend, tn_env *env, int32_t index, tn_device_properties *properties);
  tn_status (*device_open)(void *backend, tn_env *env, int32_t index, void **device);
  void (*device_close)(void *device, tn_env *env);

  /* At least 64-byte aligned. bytes > 0. */
  tn_status (*memory_new)(void *device, tn_env *env, int32_t kind, uint64_t bytes, void **address);
  void (*memory_delete)(void *device, int32_t kind, void *address, uint64_t bytes, tn_env *env);

  tn_status (*stream_new)(void *device, tn_env *env, int32_t role, void **stream);
  void (*stream_delete)(void *stream, tn_env *env);
  /* Blocks until all work on the stream is done; the sticky error if there is one. */
  tn_status (*stream_wait)(void *stream, tn_env *env);

  tn_status (*event_new)(void *device, tn_env *env, void **event);
  void (*event_delete)(void *event, tn_env *env);
  tn_status (*event_record)(void *event, tn_env *env, void *stream);
  /* The stream goes on only when the event's last record is done. Does not block the caller. */
  tn_status (*event_await)(void *event, tn_env *env, void *stream);
  /* Blocks the caller. An event never recorded is done. */
  tn_status (*event_wait)(void *event, tn_env *env);

  tn_status (*copy)(void *stream, tn_env *env, int32_t direction, void *to, const void *from, uint64_t bytes);
  tn_status (*fill_zero)(void *stream, tn_env *env, void *address, uint64_t bytes);

  /* Beside `accepts`: whether a foreign family's kernel can do a match on these devices; TN_EUNSUPPORTED
   * and the reason where it cannot, which `tenon plan` shows. Asked while compiling. NULL: always. */
  tn_status (*takes)(void *backend, tn_env *env, const tn_kernel *kernel, const tn_match *match);

  /* Beside `accepts`: runs a launch of a foreign family's kernel when the stream gets there. `l` and its
   * views stay as they are until the stream has been waited for; the backend passes `launch` a copy whose
   * addresses the kernel can dereference, and reports what it returns through the stream. NULL: addresses
   * can be dereferenced as they are, and the kernel runs at once. */
  tn_status (*enqueue)(void *stream, tn_env *env, tn_status (*launch)(tn_launch *l), tn_launch *l);

  /* Devices that run kernels on the host: tn_parallel ends here. `device` is of this family, or of
   * the one that it extends. NULL: chunks run one after the other. */
  void (*parallel)(void *device, int64_t chunks, void (*body)(void *arg, int64_t chunk), void *arg);

  /* Optional: record everything enqueued on the device's streams between begin and end, and run it
   * again with one call. All three or none. */
  tn_status (*capture_begin)(void *device, tn_env *env, void *stream);
  tn_status (*capture_end)(void *device, tn_env *env, void *stream, void **capture);
  tn_status (*capture_launch)(void *capture, tn_env *env, void *stream);
  void (*capture_delete)(void *capture, tn_env *env);

  /* Optional: vendor handles for foreign kernels ("cuda.1"), or NULL. */
  void *(*native)(void *device, void *stream, const char *name);
} tn_backend;

/* Options that the host sets for every backend that declares them: `threads` (int), from [run]. */

TN_END_C
#endif
