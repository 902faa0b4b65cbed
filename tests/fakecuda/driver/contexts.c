/* tests/fakecuda/driver/contexts.c: the primary context of each device, and the stack of contexts of each
 * thread. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fakecuda/driver/driver.h"

enum { MOST_PUSHED = 16 };

static tn_sim_device *engines[FAKE_DEVICES]; /* of the contexts that are retained */
static pthread_mutex_t engines_lock = PTHREAD_MUTEX_INITIALIZER;
static fake_context *primary[FAKE_DEVICES];
static unsigned primary_flags[FAKE_DEVICES];
static _Thread_local CUcontext stack[MOST_PUSHED];
static _Thread_local int depth; /* the current one is stack[depth - 1] */

/* ---- the handle for the simulated device ---- */

static tn_status context_fail(const void *handle, tn_status code, const char *option, const char *format,
                              ...) {
  (void)handle, (void)option, (void)format;
  return code;
}

static void context_log(const void *handle, int32_t level, const char *format, ...) {
  (void)handle, (void)level, (void)format;
}

static void *context_alloc(const void *handle, size_t bytes) { return (void)handle, calloc(1, bytes); }

static void context_free(const void *handle, void *block) { (void)handle, free(block); }

static const tn_api context_api = {.struct_size = sizeof context_api,
                                   .fail = context_fail,
                                   .log = context_log,
                                   .alloc = context_alloc,
                                   .free = context_free};
const tn_env fake_env = {.api = &context_api};

/* ---- the current context ---- */

CUresult fake_context_current(fake_call *call) {
  CUcontext handle = depth > 0 ? stack[depth - 1] : NULL;
  if (handle == NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_CONTEXT, "the thread has no current context");
  call->context = fake_handle_find(FAKE_CONTEXT, handle);
  if (call->context == NULL)
    return fake_refuse(call, CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context was released");
  return CUDA_SUCCESS;
}

fake_context *fake_context_of_device(int device) {
  return device >= 0 && device < FAKE_DEVICES ? primary[device] : NULL;
}

static CUresult context_check(const fake_call *call, CUcontext context) {
  if (context == NULL || fake_handle_find(FAKE_CONTEXT, context) != NULL) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_CONTEXT, "%p is no live context", (void *)context);
}

static CUresult context_set(const fake_call *call, CUcontext context) {
  CUresult code = context_check(call, context);
  if (code != CUDA_SUCCESS) return code;
  if (context == NULL) {
    depth -= depth > 0;
    return CUDA_SUCCESS;
  }
  depth += depth == 0;
  stack[depth - 1] = context;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxSetCurrent(CUcontext context) {
  FAKE_CALL(FAKE_INITIALIZED, context_set(&call, context));
}

static CUresult context_get(const fake_call *call, CUcontext *context) {
  if (context == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the context");
  *context = depth > 0 ? stack[depth - 1] : NULL;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxGetCurrent(CUcontext *context) {
  FAKE_CALL(FAKE_INITIALIZED, context_get(&call, context));
}

static CUresult context_push(const fake_call *call, CUcontext context) {
  if (context == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_CONTEXT, "the context is NULL");
  CUresult code = context_check(call, context);
  if (code != CUDA_SUCCESS) return code;
  if (depth == MOST_PUSHED)
    return fake_refuse(call, CUDA_ERROR_OUT_OF_MEMORY, "more than %d contexts are pushed", MOST_PUSHED);
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  FAKE_CALL(FAKE_INITIALIZED, context_push(&call, context));
}

static CUresult context_pop(const fake_call *call, CUcontext *context) {
  if (depth == 0) return fake_refuse(call, CUDA_ERROR_INVALID_CONTEXT, "no context is pushed");
  CUcontext top = stack[--depth];
  if (context != NULL) *context = top;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  FAKE_CALL(FAKE_INITIALIZED, context_pop(&call, context));
}

static CUresult context_device(const fake_call *call, CUdevice *device) {
  if (device == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the device");
  *device = call->context->device;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxGetDevice(CUdevice *device) { FAKE_CALL(FAKE_CURRENT, context_device(&call, device)); }

static CUresult context_wait(fake_call *call) {
  CUresult code = fake_capture_forbids_wait(call, call->context, NULL);
  tn_sim_device *d = call->context->sim;
  for (int32_t i = 0; code == CUDA_SUCCESS && i < atomic_load(&d->n_streams); i++)
    code = fake_wait(call, &d->streams[i], atomic_load(&d->streams[i].ring.tail));
  return code;
}

FAKE_API CUresult cuCtxSynchronize(void) { FAKE_CALL(FAKE_CURRENT, context_wait(&call)); }

/* ---- primary contexts ---- */

static CUresult context_check_device(const fake_call *call, CUdevice device) {
  int n = fake_settings_get()->devices;
  if (device >= 0 && device < n && device < FAKE_DEVICES) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_DEVICE, "device %d of %d", device, n);
}

static void context_free_all(fake_context *c) {
  tn_env env = fake_env;
  if (c->sim != NULL) tn_sim_backend.device_close(&env, c->sim);
  if (c->backend != NULL) tn_sim_backend.close(&env, c->backend);
  fake_memory_close(c);
  pthread_mutex_destroy(&c->lock);
  if (c->handle != NULL) fake_handle_drop(c->handle);
  free(c);
}

static CUresult context_open_engine(fake_context *c) {
  const fake_settings *s = fake_settings_get();
  tn_env env = fake_env;
  tn_sim_options options = {.devices = FAKE_DEVICES,
                            .threads = 1,
                            .seed = s->seed,
                            .queue = 1024,
                            .order = s->order,
                            .fail = "",
                            .drop = "",
                            .lacks = "",
                            .slow = ""};
  void *sim = NULL;
  if (tn_sim_backend.open(&env, &options, &c->backend) != TN_OK) return CUDA_ERROR_OUT_OF_MEMORY;
  if (tn_sim_backend.device_open(&env, c->backend, c->device, &sim) != TN_OK) return CUDA_ERROR_OUT_OF_MEMORY;
  c->sim = sim;
  return CUDA_SUCCESS;
}

static void context_set_engine(int device, tn_sim_device *engine) {
  pthread_mutex_lock(&engines_lock);
  engines[device] = engine;
  pthread_mutex_unlock(&engines_lock);
}

void fake_wake(int device) {
  pthread_mutex_lock(&engines_lock);
  if (device >= 0 && device < FAKE_DEVICES && engines[device] != NULL) tn_sim_wake(engines[device]);
  pthread_mutex_unlock(&engines_lock);
}

static CUresult context_new(CUdevice device) {
  fake_context *c = calloc(1, sizeof *c);
  if (c == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  c->device = device;
  pthread_mutex_init(&c->lock, NULL);
  CUresult code = context_open_engine(c);
  c->memory = fake_memory_open();
  c->handle = fake_handle_new(FAKE_CONTEXT, c, c);
  if (code == CUDA_SUCCESS && c->memory != NULL && c->handle != NULL) {
    primary[device] = c;
    context_set_engine(device, c->sim);
    return CUDA_SUCCESS;
  }
  context_free_all(c);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult context_retain(const fake_call *call, CUcontext *context, CUdevice device) {
  if (context == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the context");
  CUresult code = context_check_device(call, device);
  if (code == CUDA_SUCCESS && primary[device] == NULL) code = context_new(device);
  if (code != CUDA_SUCCESS) return code;
  primary[device]->references++;
  *context = primary[device]->handle;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  FAKE_CALL(FAKE_INITIALIZED, context_retain(&call, context, device));
}

void fake_leak(const fake_context *context, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (atomic_load(&context->fault) == CUDA_SUCCESS) fake_log("leak on device %d: %s", context->device, text);
}

static CUresult context_release(const fake_call *call, CUdevice device) {
  CUresult code = context_check_device(call, device);
  if (code != CUDA_SUCCESS) return code;
  fake_context *c = primary[device];
  if (c == NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_CONTEXT, "the context of device %d is not retained", device);
  if (c->references == 1 && (!fake_finish(c) || primary[device] != c)) return CUDA_SUCCESS;
  if (--c->references > 0) return CUDA_SUCCESS;
  fake_captures_close(c);
  fake_graphs_close(c);
  fake_events_close(c);
  fake_streams_close(c);
  fake_modules_close(c);
  primary[device] = NULL;
  context_set_engine(device, NULL);
  context_free_all(c);
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKE_CALL(FAKE_INITIALIZED | FAKE_FREES, context_release(&call, device));
}

static CUresult context_set_flags(const fake_call *call, CUdevice device, unsigned flags) {
  CUresult code = context_check_device(call, device);
  if (code != CUDA_SUCCESS) return code;
  unsigned schedule = flags & CU_CTX_SCHED_MASK;
  bool one = (schedule & (schedule - 1)) == 0;
  if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0 || !one)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no such flags: %#x", flags);
  primary_flags[device] = flags;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  FAKE_CALL(FAKE_INITIALIZED, context_set_flags(&call, device, flags));
}
