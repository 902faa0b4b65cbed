/* tests/fakecuda/driver/memory_ops.c: values that a stream writes by itself. */
#include "tests/fakecuda/driver/driver.h"

typedef struct written_value {
  fake_context *context;
  CUdeviceptr to;
  _Atomic uint32_t *host; /* NULL: device memory, looked up when the write runs */
  uint32_t value;
} written_value;

static int value_write(void *arg, char *why) {
  const written_value *w = arg;
  fake_block b;
  _Atomic uint32_t *to = w->host;
  char *at = (char *)(uintptr_t)w->to;
  if (to == NULL && fake_memory_find(w->context, at, &b)) to = (void *)(b.real + (at - b.address));
  if (to == NULL) return fake_memory_describe(w->context, at, why, FAKE_WHY), -1;
  atomic_store(to, w->value);
  return 0;
}

/* The host's memory must be pinned. */
static CUresult value_find(const fake_call *call, written_value *w) {
  void *address = (void *)(uintptr_t)w->to, *real;
  fake_block b;
  bool pinned = false;
  if (fake_memory_find(w->context, address, &b) && b.device)
    return fake_memory_check(call, w->to, sizeof w->value, "the target", &real);
  CUresult code = fake_memory_check_host(call, address, sizeof w->value, "the target", &pinned);
  if (code == CUDA_SUCCESS && !pinned)
    code = fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "the target is neither of the device nor pinned");
  w->host = address;
  return code;
}

static CUresult value_push(const fake_call *call, CUstream handle, CUdeviceptr to, uint32_t value,
                           unsigned flags) {
  fake_stream *s;
  CUresult code = fake_stream_for_work(call, handle, &s);
  if (code != CUDA_SUCCESS) return code;
  if (to == 0 || to % sizeof value != 0 || flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "4 bytes at %#llx, flags %u", (unsigned long long)to,
                       flags);
  written_value w = {.context = s->context, .to = to, .value = value};
  code = value_find(call, &w);
  fake_task task = {.name = call->name, .body = value_write, .arg = &w, .bytes = sizeof w};
  return code == CUDA_SUCCESS ? fake_push(call, s, &task) : code;
}

FAKE_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  FAKE_CALL(FAKE_CURRENT, value_push(&call, stream, to, value, flags));
}
