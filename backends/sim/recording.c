/* backends/sim/recording.c: work that is recorded while a device captures. As in CUDA graphs, another stream
 * joins when it awaits an event of the capture, and an event from outside cannot be awaited. */
#include "backends/sim/capture.h"

#include <string.h>

/* Grows an array of n elements of `size` bytes by at least one element. */
static void *recording_grow(tn_env *env, void *v, uint64_t n, uint64_t *capacity, size_t size) {
  uint64_t wanted = *capacity > 0 ? 2 * *capacity : 16;
  void *larger = tn_new(env, size * wanted);
  if (larger == NULL) return NULL;
  if (n > 0) memcpy(larger, v, size * n);
  tn_delete(env, v);
  *capacity = wanted;
  return larger;
}

static tn_status recording_add(tn_env *env, tn_sim_capture *c, tn_sim_stream *stream,
                               const tn_sim_work *work) {
  tn_sim_queue *lane = &c->lanes[stream->index];
  uint64_t n = atomic_load(&lane->tail);
  if (n == 0 && stream != c->origin && work->kind != TN_SIM_JOIN)
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "sim: '%s' is captured on a stream that awaits no event of the capture; record one on the "
                   "stream that captures and await it first",
                   tn_sim_work_kind(work));
  if (n == lane->capacity) {
    tn_sim_work *items = recording_grow(env, lane->items, n, &lane->capacity, sizeof *items);
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
  return recording_add(env, stream->device->capturing, stream, work);
}

tn_status tn_sim_capture_record(tn_env *env, tn_sim_event *event, tn_sim_stream *stream) {
  tn_sim_capture *c = stream->device->capturing;
  if (c->n_marks == c->marks_capacity) {
    uint64_t capacity = (uint64_t)c->marks_capacity;
    tn_sim_mark *marks = recording_grow(env, c->marks, (uint64_t)c->n_marks, &capacity, sizeof *marks);
    if (marks == NULL) return TN_ENOMEM;
    c->marks = marks;
    c->marks_capacity = (int32_t)capacity;
  }
  tn_sim_work work = {.kind = TN_SIM_MARK};
  work.mark = c->n_marks;
  TN_TRY(recording_add(env, c, stream, &work));
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
  tn_status status = recording_add(env, c, stream, &work);
  if (status == TN_OK) tn_sim_clock_join(&c->clocks[stream->index], &c->marks[event->mark].clock);
  return status;
}
