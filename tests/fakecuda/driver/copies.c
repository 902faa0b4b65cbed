/* tests/fakecuda/driver/copies.c: copies and memsets. A copy looks its device memory up when it runs, so that
 * a graph that outlives the memory faults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/driver/driver.h"

typedef struct fake_copy {
  fake_context *context;
  CUdeviceptr to_device, from_device; /* 0: host memory */
  void *to;
  const void *from; /* NULL with from_device = 0: the bytes lie in `own` */
  size_t bytes;
  uint64_t sum; /* of pinned bytes at the call; 0: not checked */
  int on_way;   /* of a copy to pinned memory: its number in copies_on_way; -1 */
  unsigned char own[];
} fake_copy;

/* ---- FAKECUDA_BYTES: a file for the bytes that copies have moved, "to_device 4096" ---- */

enum { COPY_TO_DEVICE, COPY_TO_HOST, COPY_ON_DEVICE, COPY_KINDS };
static _Atomic uint64_t copied[COPY_KINDS];

static void copy_count(const fake_copy *c) {
  int kind = c->to_device == 0 ? COPY_TO_HOST : c->from_device == 0 ? COPY_TO_DEVICE : COPY_ON_DEVICE;
  atomic_fetch_add(&copied[kind], c->bytes);
}

__attribute__((destructor)) static void copy_write_counts(void) {
  static const char *const names[COPY_KINDS] = {"to_device", "to_host", "on_device"};
  const char *path = getenv("FAKECUDA_BYTES");
  FILE *file = path != NULL && *path != '\0' ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  for (int i = 0; i < COPY_KINDS; i++)
    fprintf(file, "%s %llu\n", names[i], (unsigned long long)atomic_load(&copied[i]));
  fclose(file);
}

/* ---- copies to pinned memory that are not done ---- */

/* A copy from there, which an event may order behind one of them, reads bytes that are not the host's. The
 * calls of the driver take turns, and the engine clears `bytes`. */
enum { COPIES_ON_WAY = 1024 };
static struct {
  const char *to;
  _Atomic size_t bytes; /* 0: free */
} copies_on_way[COPIES_ON_WAY];

/* -1: no entry is free; the copy is not followed. */
static int copy_follow(const void *to, size_t bytes) {
  for (int i = 0; i < COPIES_ON_WAY; i++) {
    if (atomic_load(&copies_on_way[i].bytes) != 0) continue;
    copies_on_way[i].to = to;
    atomic_store(&copies_on_way[i].bytes, bytes);
    return i;
  }
  return -1;
}

static bool copy_is_on_way(const void *from, size_t bytes) {
  const char *first = from;
  for (int i = 0; i < COPIES_ON_WAY; i++) {
    size_t n = atomic_load(&copies_on_way[i].bytes);
    if (n != 0 && copies_on_way[i].to < first + bytes && first < copies_on_way[i].to + n) return true;
  }
  return false;
}

/* ---- on the engine ---- */

/* The host's view of a device address. */
static void *copy_real(fake_context *context, CUdeviceptr address, char *why) {
  fake_block b;
  char text[256];
  char *at = (char *)(uintptr_t)address;
  if (fake_memory_find(context, at, &b) && b.device) return b.real + (at - b.address);
  fake_memory_describe(context, at, text, sizeof text);
  snprintf(why, FAKE_WHY, "%s", text);
  return NULL;
}

static int copy_run(void *arg, char *why) {
  const fake_copy *c = arg;
  void *to = c->to_device != 0 ? copy_real(c->context, c->to_device, why) : c->to;
  const void *from = c->from != NULL ? c->from : c->own;
  if (c->from_device != 0) from = copy_real(c->context, c->from_device, why);
  if (to == NULL || from == NULL) return -1;
  if (c->sum != 0 && tn_sim_sum(from, c->bytes) != c->sum)
    fake_log("cuMemcpyHtoDAsync_v2: the host wrote to %p, %zu bytes, before the copy from there was done",
             from, c->bytes);
  memmove(to, from, c->bytes);
  if (c->to != NULL && c->on_way >= 0) atomic_store(&copies_on_way[c->on_way].bytes, 0);
  copy_count(c);
  return 0;
}

/* ---- enqueuing ---- */

static CUresult copy_push(const fake_call *call, fake_stream *s, const fake_copy *copy, size_t own) {
  fake_task task = {.name = call->name, .body = copy_run, .arg = copy, .bytes = sizeof *copy + own};
  return fake_push(call, s, &task);
}

static CUresult copy_refuse_pageable(const fake_call *call, const fake_stream *s) {
  return fake_capture_spoil(call, s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                            "the host memory of a captured copy must be pinned");
}

/* Pageable memory has been read when the call returns. */
static CUresult copy_push_bytes(const fake_call *call, fake_stream *s, const fake_copy *copy,
                                const void *from) {
  fake_copy *with = malloc(sizeof *copy + copy->bytes);
  if (with == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  *with = *copy;
  with->from = NULL;
  memcpy(with->own, from, copy->bytes);
  CUresult code = copy_push(call, s, with, copy->bytes);
  free(with);
  return code;
}

static CUresult copy_to_device(const fake_call *call, CUdeviceptr to, const void *from, size_t bytes,
                               CUstream handle) {
  fake_stream *s;
  void *real;
  bool pinned = false;
  CUresult code = fake_stream_for_work(call, handle, &s);
  if (code != CUDA_SUCCESS || bytes == 0) return code;
  code = fake_memory_check(call, to, bytes, "the target", &real);
  if (code == CUDA_SUCCESS) code = fake_memory_check_host(call, from, bytes, "the source", &pinned);
  if (code != CUDA_SUCCESS) return code;
  fake_copy copy = {.context = s->context, .to_device = to, .from = from, .bytes = bytes};
  if (!pinned && s->capture != NULL) return copy_refuse_pageable(call, s);
  if (!pinned) return copy_push_bytes(call, s, &copy, from);
  if (s->capture == NULL && !copy_is_on_way(from, bytes)) copy.sum = tn_sim_sum(from, bytes);
  return copy_push(call, s, &copy, 0);
}

FAKE_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  FAKE_CALL(FAKE_CURRENT, copy_to_device(&call, to, from, bytes, stream));
}

/* A copy to pageable memory is done when the call returns. */
static CUresult copy_to_host(fake_call *call, void *to, CUdeviceptr from, size_t bytes, CUstream handle) {
  fake_stream *s;
  void *real;
  bool pinned = false;
  CUresult code = fake_stream_for_work(call, handle, &s);
  if (code != CUDA_SUCCESS || bytes == 0) return code;
  code = fake_memory_check(call, from, bytes, "the source", &real);
  if (code == CUDA_SUCCESS) code = fake_memory_check_host(call, to, bytes, "the target", &pinned);
  if (code != CUDA_SUCCESS) return code;
  if (!pinned && s->capture != NULL) return copy_refuse_pageable(call, s);
  fake_copy copy = {.context = s->context, .to = to, .from_device = from, .bytes = bytes, .on_way = -1};
  if (pinned && s->capture == NULL) copy.on_way = copy_follow(to, bytes);
  code = copy_push(call, s, &copy, 0);
  return code == CUDA_SUCCESS && !pinned ? fake_wait(call, s->sim, atomic_load(&s->sim->ring.tail)) : code;
}

FAKE_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAKE_CALL(FAKE_CURRENT, copy_to_host(&call, to, from, bytes, stream));
}

static CUresult copy_on_device(const fake_call *call, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                               CUstream handle) {
  fake_stream *s;
  void *real;
  CUresult code = fake_stream_for_work(call, handle, &s);
  if (code != CUDA_SUCCESS || bytes == 0) return code;
  code = fake_memory_check(call, to, bytes, "the target", &real);
  if (code == CUDA_SUCCESS) code = fake_memory_check(call, from, bytes, "the source", &real);
  if (code != CUDA_SUCCESS) return code;
  if (to < from + bytes && from < to + bytes)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "source and target overlap");
  fake_copy copy = {.context = s->context, .to_device = to, .from_device = from, .bytes = bytes};
  return copy_push(call, s, &copy, 0);
}

FAKE_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAKE_CALL(FAKE_CURRENT, copy_on_device(&call, to, from, bytes, stream));
}

/* ---- memsets ---- */

typedef struct fill {
  fake_context *context;
  CUdeviceptr to;
  uint32_t value;
  size_t width, n;    /* of elements; n in a row */
  size_t rows, pitch; /* bytes from one row to the next */
} fill;

static int copy_run_fill(void *arg, char *why) {
  const fill *f = arg;
  char *to = copy_real(f->context, f->to, why);
  if (to == NULL) return -1;
  for (size_t row = 0; f->width == 1 && row < f->rows; row++)
    memset(to + row * f->pitch, (int)f->value, f->n);
  for (size_t i = 0; f->width == sizeof f->value && i < f->n; i++)
    memcpy(to + i * sizeof f->value, &f->value, sizeof f->value);
  return 0;
}

static CUresult copy_fill(const fake_call *call, fill f, CUstream handle) {
  fake_stream *s;
  void *real;
  CUresult code = fake_stream_for_work(call, handle, &s);
  if (code != CUDA_SUCCESS || f.n == 0 || f.rows == 0) return code;
  if (f.rows > 1 && (f.pitch < f.n || f.rows > SIZE_MAX / f.pitch))
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%zu rows of %zu bytes, %zu apart", f.rows, f.n,
                       f.pitch);
  if (f.to % f.width != 0 || f.n > SIZE_MAX / f.width)
    return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "%zu elements of %zu bytes at %#llx", f.n, f.width,
                       (unsigned long long)f.to);
  code = fake_memory_check(call, f.to, (f.rows - 1) * f.pitch + f.n * f.width, "the target", &real);
  if (code != CUDA_SUCCESS) return code;
  f.context = s->context;
  fake_task task = {.name = call->name, .body = copy_run_fill, .arg = &f, .bytes = sizeof f};
  return fake_push(call, s, &task);
}

FAKE_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  fill f = {.to = to, .value = value, .width = 1, .n = n, .rows = 1};
  FAKE_CALL(FAKE_CURRENT, copy_fill(&call, f, stream));
}

FAKE_API CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t n, size_t rows,
                                    CUstream stream) {
  fill f = {.to = to, .value = value, .width = 1, .n = n, .rows = rows, .pitch = pitch};
  FAKE_CALL(FAKE_CURRENT, copy_fill(&call, f, stream));
}

FAKE_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
  fill f = {.to = to, .value = value, .width = sizeof f.value, .n = n, .rows = 1};
  FAKE_CALL(FAKE_CURRENT, copy_fill(&call, f, stream));
}
