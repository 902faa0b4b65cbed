/* core/exec/device/process.c: devices after fork(). The child has the memory of the parent and one of its
 * threads. It has neither the threads of teams and engines, which work would wait for, nor what a driver
 * keeps for the parent. So in the child every call about a device of the parent fails, and closing it calls
 * nothing of the backend. */
#include "core/exec/device/device.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- the owner ---- */

/* The kernel zeroes the page in a child. Without the page, on a kernel before 4.14, the process is asked for
 * its number, which takes longer than a small op. */
void tn_device_own(tn_device *device) {
  size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  device->process = getpid();
#ifdef MADV_WIPEONFORK
  char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, bytes, MADV_WIPEONFORK) == 0) {
    *page = 1;
    device->own_page = page;
  } else {
    munmap(page, bytes);
  }
#else
  (void)bytes;
#endif
}

void tn_device_disown(tn_device *device) {
  if (device->own_page != NULL) munmap(device->own_page, (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- the backend of a child ---- */

static tn_status process_refuse(tn_env *env) {
  return tn_failf(env, TN_EUNAVAILABLE,
                  "the device was opened by another process, whose threads do not exist in this one, which "
                  "fork() made; open device and session in this process");
}

static tn_status process_wait(tn_env *env, void *object) {
  (void)object;
  return process_refuse(env);
}
static tn_status process_order(tn_env *env, void *event, void *stream) {
  (void)event, (void)stream;
  return process_refuse(env);
}
static tn_status process_done(tn_env *env, void *event, int32_t *done) {
  (void)event, (void)done;
  return process_refuse(env);
}
static tn_status process_seconds(tn_env *env, void *from, void *to, double *seconds) {
  (void)from, (void)to, (void)seconds;
  return process_refuse(env);
}
static tn_status process_new(tn_env *env, void *device, void **object) {
  (void)device;
  *object = NULL;
  return process_refuse(env);
}
static tn_status process_memory_new(tn_env *env, void *device, int32_t kind, uint64_t bytes, void **address) {
  (void)device, (void)kind, (void)bytes;
  *address = NULL;
  return process_refuse(env);
}
static tn_status process_copy(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                              uint64_t bytes) {
  (void)stream, (void)direction, (void)to, (void)from, (void)bytes;
  return process_refuse(env);
}
static tn_status process_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  (void)stream, (void)address, (void)bytes;
  return process_refuse(env);
}
static tn_status process_enqueue(tn_env *env, void *stream, tn_status (*launch)(tn_launch *l), tn_launch *l) {
  (void)stream, (void)launch, (void)l;
  return process_refuse(env);
}
static tn_status process_capture(tn_env *env, void *device, void *stream, tn_status (*work)(void *arg),
                                 void *arg, void **capture) {
  (void)device, (void)stream, (void)work, (void)arg;
  *capture = NULL;
  return process_refuse(env);
}
static void process_keep(tn_env *env, void *object) { (void)env, (void)object; }
static void process_keep_memory(tn_env *env, void *device, int32_t kind, void *address, uint64_t bytes) {
  (void)env, (void)device, (void)kind, (void)address, (void)bytes;
}
static void *process_native(tn_env *env, void *device, void *stream, const char *name) {
  (void)env, (void)device, (void)stream, (void)name;
  return NULL;
}

static tn_status process_finish_prepare(tn_env *env, void *device, int32_t *declined) {
  (void)device, (void)declined;
  return process_refuse(env);
}

/* Name, options and preference stay those of the backend. */
static void process_replace_callbacks(tn_backend *b) {
  b->close = b->device_close = b->stream_delete = b->event_delete = b->capture_delete = process_keep;
  b->memory_new = process_memory_new;
  b->memory_delete = process_keep_memory;
  b->stream_wait = b->event_wait = process_wait;
  b->event_new = process_new;
  b->event_record = b->event_await = b->capture_launch = process_order;
  b->event_done = process_done;
  b->event_seconds = process_seconds;
  b->copy = process_copy;
  b->fill_zero = process_fill_zero;
  b->enqueue = process_enqueue;
  b->capture = process_capture;
  b->native = process_native;
  b->finish_prepare = process_finish_prepare;
  b->memory_info = NULL;
}

tn_status tn_device_check_owner(tn_device *device) {
  bool own = device->own_page != NULL ? *device->own_page != 0 : getpid() == device->process;
  if (own) return TN_OK;
  if (device->backend != &device->lost) {
    device->lost = *device->backend;
    process_replace_callbacks(&device->lost);
    device->backend = &device->lost;
    device->extension_self = NULL; /* not closed either */
  }
  return process_refuse(&device->env);
}
