/* backends/sim/capture.c: capture and replay. Between begin and end the host's calls record work, and nothing
 * runs. As in CUDA graphs, another stream joins when it awaits an event of the capture, the capturing stream
 * must await it before the end, and events from outside cannot be awaited. The replaying stream alone orders
 * a replay with other work. */
#include "backends/sim/capture.h"

#include <string.h>

/* ---- recording ---- */

/* Grows an array of n elements of `size` bytes by at least one element. */
static void *capture_grow(tn_env *env, void *v, uint64_t n, uint64_t *capacity, size_t size) {
  uint64_t wanted = *capacity > 0 ? 2 * *capacity : 16;
  void *larger = tn_new(env, size * wanted);
  if (larger == NULL) return NULL;
  if (n > 0) memcpy(larger, v, size * n);
  tn_delete(env, v);
  *capacity = wanted;
  return larger;
}

static tn_status capture_add(tn_env *env, tn_sim_capture *c, tn_sim_stream *stream, const tn_sim_work *work) {
  tn_sim_queue *lane = &c->lanes[stream->index];
  uint64_t n = atomic_load(&lane->tail);
  if (n == 0 && stream != c->origin && work->kind != TN_SIM_JOIN)
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "sim: '%s' is captured on a stream that awaits no event of the capture; record one on the "
                   "stream that captures and await it first",
                   tn_sim_work_kind(work));
  if (n == lane->capacity) {
    tn_sim_work *items = capture_grow(env, lane->items, n, &lane->capacity, sizeof *items);
    if (items == NULL) return TN_ENOMEM;
    lane->items = items;
  }
  lane->items[n] = *work;
  atomic_store(&lane->tail, n + 1);
  c->clocks[stream->index].at[stream->index]++;
  return TN_OK;
}

tn_status tn_sim_capture_add(tn_env *env, tn_sim_stream *stream, const tn_sim_work *work) {
  if (work->kind == TN_SIM_REPLAY)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: captured work cannot be captured again");
  return capture_add(env, stream->device->capturing, stream, work);
}

tn_status tn_sim_capture_record(tn_env *env, tn_sim_event *event, tn_sim_stream *stream) {
  tn_sim_capture *c = stream->device->capturing;
  if (c->n_marks == c->marks_capacity) {
    uint64_t capacity = (uint64_t)c->marks_capacity;
    tn_sim_mark *marks = capture_grow(env, c->marks, (uint64_t)c->n_marks, &capacity, sizeof *marks);
    if (marks == NULL) return TN_ENOMEM;
    c->marks = marks;
    c->marks_capacity = (int32_t)capacity;
  }
  tn_sim_work work = {.kind = TN_SIM_MARK};
  work.mark = c->n_marks;
  tn_status status = capture_add(env, c, stream, &work);
  if (status != TN_OK) return status;
  c->marks[c->n_marks].clock = c->clocks[stream->index];
  event->captured = c->id;
  event->mark = c->n_marks++;
  return TN_OK;
}

tn_status tn_sim_capture_await(tn_env *env, const tn_sim_event *event, tn_sim_stream *stream) {
  tn_sim_capture *c = stream->device->capturing;
  if (event->captured != c->id)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: captured work cannot await an event from outside");
  tn_sim_work work = {.kind = TN_SIM_JOIN};
  work.mark = event->mark;
  tn_status status = capture_add(env, c, stream, &work);
  if (status == TN_OK) tn_sim_clock_join(&c->clocks[stream->index], &c->marks[event->mark].clock);
  return status;
}

/* ---- begin, end ---- */

tn_status tn_sim_capture_begin(tn_env *env, void *device, void *stream) {
  tn_sim_device *d = device;
  if (d->capturing != NULL)
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: device %d is capturing already", d->index);
  tn_sim_capture *c = tn_new(env, sizeof *c);
  if (c == NULL) return TN_ENOMEM;
  c->device = d;
  c->origin = stream;
  c->id = ++d->captures;
  d->capturing = c;
  return TN_OK;
}

/* The clock of the capturing stream must include all work of the others. */
static tn_status capture_check_joined(tn_env *env, const tn_sim_capture *c) {
  const tn_sim_clock *origin = &c->clocks[c->origin->index];
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++)
    if (origin->at[i] < c->clocks[i].at[i])
      return tn_fail(env, TN_EUNSUPPORTED, NULL,
                     "sim: the stream that captures does not await the end of '%s' on another stream",
                     tn_sim_work_kind(&c->lanes[i].items[atomic_load(&c->lanes[i].tail) - 1]));
  return TN_OK;
}

tn_status tn_sim_capture_end(tn_env *env, void *device, void *stream, void **capture) {
  tn_sim_device *d = device;
  tn_sim_capture *c = d->capturing;
  *capture = NULL;
  if (c == NULL || c->origin != stream)
    return tn_fail(env, TN_EINTERNAL, NULL, "sim: a capture ends that has not begun on this stream");
  d->capturing = NULL;
  tn_status status = capture_check_joined(env, c);
  if (status == TN_OK)
    *capture = c;
  else
    tn_sim_capture_delete(env, c);
  return status;
}

void tn_sim_capture_delete(tn_env *env, void *capture) {
  tn_sim_capture *c = capture;
  if (c == NULL) return;
  tn_sim_finish(c->device);
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++) tn_delete(env, c->lanes[i].items);
  tn_delete(env, c->marks);
  tn_delete(env, c);
}

/* ---- replay ---- */

tn_status tn_sim_capture_launch(tn_env *env, void *capture, void *stream) {
  tn_sim_work work = {.kind = TN_SIM_REPLAY};
  work.capture = capture;
  return tn_sim_push(env, stream, &work, NULL);
}

static void capture_start_lane(tn_sim_capture *c, tn_sim_queue *lane, int32_t index, tn_sim_stream *stream) {
  bool origin = index == c->origin->index;
  lane->stream = stream;
  lane->capture = c;
  lane->clock = origin ? &stream->clock : &c->clocks[index];
  lane->clock_index = origin ? stream->ring.clock_index : 1 + TN_SIM_STREAMS + index;
  lane->pending = false;
  if (!origin) c->clocks[index] = stream->clock;
  uint64_t n = atomic_load(&lane->tail);
  for (uint64_t i = 0; i < n; i++) lane->items[i].begun = false;
  atomic_store(&lane->head, 0);
}

void tn_sim_capture_start(tn_sim_capture *c, tn_sim_stream *stream, const tn_sim_work *replay) {
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++) capture_start_lane(c, &c->lanes[i], i, stream);
  for (int32_t i = 0; i < c->n_marks; i++) c->marks[i].done = false;
  c->number = replay->number;
}

bool tn_sim_capture_done(const tn_sim_capture *c) {
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++)
    if (atomic_load(&c->lanes[i].head) < atomic_load(&c->lanes[i].tail)) return false;
  return true;
}
