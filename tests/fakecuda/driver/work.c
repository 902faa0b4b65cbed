/* tests/fakecuda/driver/work.c: pieces of work on the engine of the simulated device. The engine's task
 * carries the address of a piece; a stream or a graph owns it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/driver/driver.h"
#include "tests/fakecuda/driver/task.h"

typedef struct fake_work {
  struct fake_work *next;
  fake_context *context;
  uint64_t position; /* on its stream; 0: it is captured */
  char name[96];
  fake_body body;
  bool computes;
  void (*release)(void *arg);
  _Alignas(16) unsigned char arg[];
} fake_work;

/* ---- on the engine ---- */

static tn_status work_fail(const fake_work *w, int code, const char *why) {
  int none = CUDA_SUCCESS, fault = code > 0 ? code : CUDA_ERROR_ILLEGAL_ADDRESS;
  if (code < 0) fake_log("fault on device %d: '%s': %s", w->context->device, w->name, why);
  atomic_compare_exchange_strong(&w->context->fault, &none, fault);
  return TN_EDEVICE;
}

/* After a fault nothing runs any more in the context. */
static tn_status work_run(tn_env *env, void *arg) {
  (void)env;
  fake_work *w;
  memcpy(&w, arg, sizeof w);
  char why[FAKE_WHY] = "no reason given";
  if (atomic_load(&w->context->fault) != CUDA_SUCCESS) return TN_OK;
  if (w->computes) fake_memory_show(w->context, true);
  int code = fake_guard(w->context, w->body, w->arg, why);
  if (w->computes) fake_memory_show(w->context, false);
  if (code == FAKE_PENDING) return TN_SIM_PENDING;
  return code == 0 ? TN_OK : work_fail(w, code, why);
}

/* ---- enqueuing ---- */

void fake_works_free(struct fake_work *first) {
  while (first != NULL) {
    fake_work *next = first->next;
    if (first->release != NULL && first->position == 0) first->release(first->arg);
    free(first);
    first = next;
  }
}

/* Frees what the stream has done. */
static void work_sweep(fake_stream *s) {
  uint64_t done = atomic_load(&s->sim->ring.head);
  while (s->first != NULL && s->first->position <= done) {
    fake_work *next = s->first->next;
    free(s->first);
    s->first = next;
  }
  if (s->first == NULL) s->last = NULL;
}

static void work_keep(fake_stream *s, fake_work *w) {
  if (s->capture != NULL) {
    w->next = s->capture->works;
    s->capture->works = w;
    s->capture->nodes++;
    return;
  }
  work_sweep(s);
  w->position = atomic_load(&s->sim->ring.tail);
  if (s->last != NULL)
    s->last->next = w;
  else
    s->first = w;
  s->last = w;
}

static CUresult work_code(const fake_stream *s) {
  int fault = atomic_load(&s->context->fault);
  return fault != CUDA_SUCCESS ? (CUresult)fault : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fake_push(const fake_call *call, fake_stream *stream, const fake_task *task) {
  CUresult code = fake_capture_check(call, stream);
  if (code != CUDA_SUCCESS) return code;
  fake_work *w = calloc(1, sizeof *w + task->bytes);
  if (w == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  w->context = stream->context;
  w->body = task->body;
  w->computes = task->computes;
  w->release = task->release;
  snprintf(w->name, sizeof w->name, "%s", task->name);
  if (task->bytes > 0) memcpy(w->arg, task->arg, task->bytes);
  tn_env env = fake_env;
  tn_sim_task sim = {.name = w->name, .body = work_run};
  fake_capture_aim(stream);
  tn_status status = tn_sim_push_task(&env, stream->sim, &sim, &w, sizeof w);
  fake_capture_leave(stream);
  if (status != TN_OK) return free(w), work_code(stream);
  work_keep(stream, w);
  return CUDA_SUCCESS;
}

/* ---- work of another double ---- */

typedef struct foreign {
  int (*body)(void *arg);
  size_t bytes;
  _Alignas(16) unsigned char arg[1024];
} foreign;

/* Each replay starts from the copy made at enqueuing. FAKECUDA_FAIL=task:N: the N-th one that runs faults. */
static int work_run_foreign(void *arg, char *why) {
  foreign here;
  CUresult asked = fake_count("task");
  if (asked != CUDA_SUCCESS) return asked == CUDA_ERROR_UNKNOWN ? CUDA_ERROR_ILLEGAL_ADDRESS : (int)asked;
  memcpy(&here, arg, sizeof here);
  int code = here.body(here.arg);
  if (code != 0) snprintf(why, FAKE_WHY, "it returned %d", code);
  return code != 0 ? -1 : 0;
}

static CUresult work_enqueue(const fake_call *call, CUstream handle, const char *name, int (*body)(void *arg),
                             const void *arg, size_t bytes) {
  fake_stream *s;
  foreign f = {.body = body, .bytes = bytes};
  CUresult code = fake_stream_for_work(call, handle, &s);
  if (code != CUDA_SUCCESS) return code;
  if (bytes > sizeof f.arg || body == NULL)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "'%s' has an argument of %zu bytes", name, bytes);
  if (bytes > 0) memcpy(f.arg, arg, bytes);
  fake_task task = {.name = name, .body = work_run_foreign, .arg = &f, .bytes = sizeof f, .computes = true};
  return fake_push(call, s, &task);
}

FAKE_API CUresult fakecuda_enqueue(CUstream stream, const char *name, int (*body)(void *arg), const void *arg,
                                   size_t bytes) {
  fake_call call = {.name = "fakecuda_enqueue"};
  CUresult code = fake_enter_inside(&call, FAKE_CURRENT);
  if (code == CUDA_SUCCESS) code = work_enqueue(&call, stream, name, body, arg, bytes);
  return fake_leave(&call, code);
}

/* ---- work of another double that waits ---- */

typedef struct waiting {
  int (*body)(void *arg, bool first);
  void (*release)(void *arg);
  void *arg;
  bool begun;
} waiting;

static int work_run_waiting(void *arg, char *why) {
  waiting *w = arg;
  int code = w->body(w->arg, !w->begun);
  w->begun = code == FAKECUDA_PENDING;
  if (code == FAKECUDA_PENDING) return FAKE_PENDING;
  if (code != 0) snprintf(why, FAKE_WHY, "it returned %d", code);
  return code != 0 ? -1 : 0;
}

static void work_release_waiting(void *arg) {
  const waiting *w = arg;
  w->release(w->arg);
}

static CUresult work_enqueue_waiting(const fake_call *call, CUstream handle, const char *name,
                                     const waiting *w) {
  fake_stream *s;
  CUresult code = fake_stream_for_work(call, handle, &s);
  fake_task task = {.name = name,
                    .body = work_run_waiting,
                    .arg = w,
                    .bytes = sizeof *w,
                    .release = w->release != NULL ? work_release_waiting : NULL};
  return code == CUDA_SUCCESS ? fake_push(call, s, &task) : code;
}

FAKE_API CUresult fakecuda_enqueue_waiting(CUstream stream, const char *name,
                                           int (*body)(void *arg, bool first), void (*release)(void *arg),
                                           void *arg) {
  waiting w = {.body = body, .release = release, .arg = arg};
  fake_call call = {.name = "fakecuda_enqueue_waiting"};
  CUresult code = fake_enter_inside(&call, FAKE_CURRENT);
  if (code == CUDA_SUCCESS) code = work_enqueue_waiting(&call, stream, name, &w);
  return fake_leave(&call, code);
}

FAKE_API void fakecuda_wake(int device) { fake_wake(device); }

/* ---- memory ---- */

FAKE_API void *fakecuda_real(int device, const void *from, size_t bytes) {
  fake_block b;
  fake_context *c = fake_context_of_device(device);
  bool inside = c != NULL && fake_memory_find(c, from, &b) && b.device &&
                bytes <= (size_t)(b.address + b.bytes - (const char *)from);
  return inside ? b.real + ((const char *)from - b.address) : NULL;
}

FAKE_API int fakecuda_is_device_memory(const void *from, size_t bytes) {
  fake_call call = {.name = "fakecuda_is_device_memory"};
  fake_block b;
  bool is = fake_enter_inside(&call, FAKE_CURRENT | FAKE_FREES) == CUDA_SUCCESS && /* also after a fault */
            fake_memory_find(call.context, from, &b) && b.device &&
            bytes <= (size_t)(b.address + b.bytes - (const char *)from);
  fake_leave(&call, CUDA_SUCCESS);
  return is;
}
