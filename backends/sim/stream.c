/* backends/sim/stream.c: streams on the host's thread: enqueuing and waiting. */
#include <string.h>

#include "backends/sim/callbacks.h"
#include "backends/sim/capture.h"

tn_status tn_sim_stream_status(tn_env *env, tn_sim_stream *stream) {
  tn_status code = atomic_load(&stream->failure.code);
  return code == TN_OK ? TN_OK : tn_fail(env, code, NULL, "%s", stream->failure.text);
}

/* ---- waiting ---- */

static void stream_want(tn_sim_stream *stream, uint64_t position) {
  if (atomic_load(&stream->wanted) >= position) return;
  atomic_store(&stream->wanted, position);
  tn_sim_signal_raise(&stream->device->work);
}

bool tn_sim_reached(tn_sim_stream *stream, uint64_t position) {
  if (atomic_load(&stream->ring.head) >= position) return true;
  stream_want(stream, position);
  return false;
}

void tn_sim_reach(tn_sim_stream *stream, uint64_t position) {
  tn_sim_signal *progress = &stream->device->progress;
  for (;;) {
    uint32_t seen = tn_sim_signal_read(progress);
    if (tn_sim_reached(stream, position)) return;
    tn_sim_signal_wait(progress, seen, -1);
  }
}

tn_status tn_sim_stream_wait(tn_env *env, void *stream) {
  tn_sim_stream *s = stream;
  if (s->device->capturing != NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: a stream cannot be waited for while work is captured");
  if (tn_sim_fault(s->device, TN_SIM_DROP_REST)) return TN_OK;
  tn_sim_reach(s, atomic_load(&s->ring.tail));
  tn_sim_clock_join(&s->device->host, &s->clock);
  return tn_sim_stream_status(env, s);
}

void tn_sim_finish(tn_sim_device *device) {
  int32_t n = atomic_load(&device->n_streams);
  for (int32_t i = 0; i < n; i++)
    tn_sim_reach(&device->streams[i], atomic_load(&device->streams[i].ring.tail));
}

/* ---- enqueuing ---- */

tn_status tn_sim_push(tn_env *env, tn_sim_stream *stream, const tn_sim_work *work, uint64_t *position) {
  TN_TRY(tn_sim_stream_status(env, stream));
  tn_sim_device *d = stream->device;
  if (d->capturing != NULL) return tn_sim_capture_add(env, stream, work);
  tn_sim_queue *ring = &stream->ring;
  uint64_t tail = atomic_load(&ring->tail);
  if (tail >= ring->capacity) tn_sim_reach(stream, tail - ring->capacity + 1);
  tn_sim_work *to = &ring->items[tail % ring->capacity];
  *to = *work;
  d->host.at[TN_SIM_HOST]++;
  to->host = d->host;
  to->number = atomic_fetch_add(&d->numbers, 1);
  atomic_store(&ring->tail, tail + 1);
  if (position != NULL) *position = tail + 1;
  tn_sim_signal_raise(&d->work);
  return TN_OK;
}

tn_status tn_sim_enqueue(tn_env *env, void *stream, tn_status (*launch)(tn_launch *l), tn_launch *l) {
  tn_sim_stream *s = stream;
  if (tn_sim_fault(s->device, TN_SIM_FAIL_LAUNCH))
    return tn_fail(env, TN_EDEVICE, NULL, "sim: launch %lld, '%s', was made to fail",
                   (long long)s->device->backend->faults.at[TN_SIM_FAIL_LAUNCH], l->name);
  tn_sim_work work = {.kind = TN_SIM_LAUNCH};
  work.launch.body = launch;
  work.launch.l = l;
  s->device->launches += s->device->capturing == NULL;
  return tn_sim_push(env, s, &work, NULL);
}

tn_status tn_sim_push_task(tn_env *env, void *stream, const tn_sim_task *task, const void *arg,
                           size_t bytes) {
  tn_sim_work work = {.kind = TN_SIM_TASK};
  if (bytes > sizeof work.task.arg)
    return tn_fail(env, TN_EINTERNAL, NULL, "sim: '%s' has an argument of %zu bytes, expected at most %d",
                   task->name, bytes, TN_SIM_ARG_BYTES);
  work.task.task = *task;
  if (bytes > 0) memcpy(work.task.arg, arg, bytes);
  return tn_sim_push(env, stream, &work, NULL);
}

void tn_sim_wake(tn_sim_device *device) { tn_sim_signal_raise(&device->work); }

/* ---- the interface sim.1 ---- */

static void stream_release(tn_sim_device *device) {
  atomic_store(&device->released, true);
  tn_sim_wake(device);
}

void tn_sim_native_init(tn_sim_native *native, tn_sim_device *device, void *stream) {
  *native = (tn_sim_native){.struct_size = sizeof *native,
                            .device = device,
                            .stream = stream,
                            .push_task = tn_sim_push_task,
                            .wake = tn_sim_wake,
                            .real = tn_sim_real,
                            .release = stream_release};
}

void *tn_sim_native_handle(tn_env *env, void *device, void *stream, const char *name) {
  (void)env;
  if (strcmp(name, TN_SIM_NATIVE) != 0) return NULL;
  return stream != NULL ? &((tn_sim_stream *)stream)->native : &((tn_sim_device *)device)->native;
}

/* ---- new, delete ---- */

tn_status tn_sim_stream_new(tn_env *env, void *device, int32_t role, void **stream) {
  tn_sim_device *d = device;
  *stream = NULL;
  int32_t index = 0;
  while (index < TN_SIM_STREAMS && d->streams[index].open) index++;
  if (index == TN_SIM_STREAMS)
    return tn_fail(env, TN_EUNAVAILABLE, NULL, "sim: a device has at most %d streams", TN_SIM_STREAMS);
  tn_sim_stream *s = &d->streams[index];
  uint64_t capacity = (uint64_t)d->backend->options.queue;
  if (s->ring.items == NULL) s->ring.items = tn_new(env, sizeof *s->ring.items * capacity);
  if (s->ring.items == NULL) return TN_ENOMEM;
  s->device = d;
  s->index = index;
  tn_sim_native_init(&s->native, d, s);
  s->role = role;
  s->ring.capacity = capacity;
  s->ring.stream = s;
  s->ring.clock = &s->clock;
  s->ring.clock_index = 1 + index;
  atomic_store(&s->failure.code, TN_OK);
  atomic_store(&s->failure.taken, false);
  s->open = true;
  if (index >= atomic_load(&d->n_streams)) atomic_store(&d->n_streams, index + 1);
  *stream = s;
  return TN_OK;
}

/* Index, clock and ring stay with the device for the next stream. */
void tn_sim_stream_delete(tn_env *env, void *stream) {
  tn_sim_stream *s = stream;
  (void)env;
  if (s == NULL) return;
  tn_sim_reach(s, atomic_load(&s->ring.tail));
  s->open = false;
}
