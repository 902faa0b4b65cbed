/* core/exec/profile.c: the times of launches and copies. Where the device has a clock, events on its streams
 * stand around each of them, nothing is waited for, and the times are read later. */
#include "core/base/system/system.h"
#include "core/base/vec.h"
#include "core/exec/bound_program.h"
#include "core/exec/collective.h"

/* Work whose times have not been read, at most: the next run waits for them. */
enum { MOST_UNREAD = 1 << 14 };

/* A pair of events, and the work between them. */
typedef struct tn_marked_work {
  tn_span span;
  void *from, *to;
} tn_marked_work;

struct tn_executor_times {
  tn_timeline *timeline;
  bool clock;                   /* the device has event_seconds; otherwise all work is waited for */
  TN_VEC(tn_marked_work) marks; /* with events; the first `used` stand around work that was not read */
  size_t used;
  /* Of each stream: an event, the host's time of it, and the end of the last span that was read. */
  void *base[TN_STREAMS];
  double base_s[TN_STREAMS], end_s[TN_STREAMS];
};

/* ---- the clock ---- */

/* Marks the same moment on all streams, which are idle, and on the host. */
static tn_status profile_set_bases(tn_executor *e, tn_executor_times *times) {
  tn_device *d = e->device;
  double before = tn_clock_s();
  for (int32_t role = 0; role < TN_STREAMS; role++) {
    if (role > 0) TN_TRY(d->backend->event_await(&d->env, times->base[0], d->streams[role]));
    TN_TRY(d->backend->event_record(&d->env, times->base[role], d->streams[role]));
  }
  for (int32_t role = 0; role < TN_STREAMS; role++) TN_TRY(tn_device_wait_event(d, times->base[role]));
  double middle = (before + tn_clock_s()) / 2;
  for (int32_t role = 0; role < TN_STREAMS; role++) times->base_s[role] = times->end_s[role] = middle;
  return TN_OK;
}

/* The device's seconds are rounded, so the next work may seem to begin before the last has ended. */
static tn_status profile_read_mark(tn_executor *e, tn_executor_times *times, tn_marked_work *mark) {
  tn_device *d = e->device;
  int32_t role = mark->span.track - TN_TRACK_STREAM;
  double begun = 0, took = 0;
  TN_TRY(d->backend->event_seconds(&d->env, times->base[role], mark->from, &begun));
  TN_TRY(d->backend->event_seconds(&d->env, mark->from, mark->to, &took));
  double start = times->base_s[role] + begun;
  mark->span.start_s = start > times->end_s[role] ? start : times->end_s[role];
  mark->span.end_s = times->end_s[role] = mark->span.start_s + took;
  tn_timeline_add(times->timeline, &mark->span);
  return TN_OK;
}

static tn_status profile_read(tn_executor *e, tn_executor_times *times) {
  tn_device *d = e->device;
  if (!times->clock) return TN_OK;
  for (int32_t role = 0; role < TN_STREAMS; role++) TN_TRY(tn_device_wait_stream(d, d->streams[role]));
  for (size_t i = 0; i < times->used; i++) TN_TRY(profile_read_mark(e, times, &times->marks.v[i]));
  times->used = 0;
  return profile_set_bases(e, times);
}

/* ---- work ---- */

static tn_status profile_next_mark(tn_executor *e, tn_executor_times *times, tn_marked_work **mark) {
  tn_device *d = e->device;
  if (times->used == times->marks.n) {
    TN_TRY(tn_vec_push(&d->env, &times->marks, (tn_marked_work){.from = NULL}));
    tn_marked_work *made = &times->marks.v[times->marks.n - 1];
    TN_TRY(d->backend->event_new(&d->env, d->device, &made->from));
    TN_TRY(d->backend->event_new(&d->env, d->device, &made->to));
  }
  *mark = &times->marks.v[times->used++];
  return TN_OK;
}

static bool profile_by_events(const tn_executor *e, const tn_timed_work *work) {
  return e->times->clock && work->device == e->device;
}

tn_status tn_profile_from(tn_executor *e, tn_timed_work *work) {
  tn_marked_work *mark;
  if (e->times == NULL) return TN_OK;
  if (!profile_by_events(e, work)) {
    TN_TRY(tn_device_wait_stream(work->device, work->stream));
    work->span.start_s = tn_clock_s();
    return TN_OK;
  }
  TN_TRY(profile_next_mark(e, e->times, &mark));
  mark->span = work->span;
  return e->device->backend->event_record(&e->device->env, mark->from, work->stream);
}

tn_status tn_profile_to(tn_executor *e, tn_timed_work *work) {
  tn_executor_times *times = e->times;
  if (times == NULL) return TN_OK;
  if (profile_by_events(e, work))
    return e->device->backend->event_record(&e->device->env, times->marks.v[times->used - 1].to,
                                            work->stream);
  TN_TRY(tn_device_wait_stream(work->device, work->stream));
  work->span.end_s = tn_clock_s();
  tn_timeline_add(times->timeline, &work->span);
  return TN_OK;
}

tn_timed_work tn_profile_work(const tn_executor *e, int32_t kind, int32_t role) {
  return (tn_timed_work){.span = {.kind = kind, .track = TN_TRACK_STREAM + role},
                         .device = e->device,
                         .stream = e->device->streams[role]};
}

tn_status tn_await_end(tn_executor *e, const tn_awaited_end *end) {
  tn_timed_work work = tn_profile_work(e, TN_SPAN_AWAIT, TN_STREAM_COMPUTE);
  TN_TRY(tn_profile_from(e, &work));
  TN_TRY(tn_comm_await(e->device, end->number));
  TN_TRY(e->device->backend->event_await(&e->device->env, end->event, work.stream));
  return tn_profile_to(e, &work);
}

void tn_profile_run(const tn_executor *e, const tn_bound_program *bound, double start_s) {
  if (e->times == NULL) return;
  tn_timeline_add(e->times->timeline, &(tn_span){.kind = TN_SPAN_RUN,
                                                 .track = TN_TRACK_HOST,
                                                 .program = (int32_t)(bound - e->programs),
                                                 .start_s = start_s,
                                                 .end_s = tn_clock_s()});
}

/* ---- on and off ---- */

/* Work that was not read may still record its events; failures of waits are ignored. */
static void profile_end(tn_executor *e) {
  tn_executor_times *times = e->times;
  tn_device *d = e->device;
  if (times == NULL) return;
  for (int32_t role = 0; role < TN_STREAMS; role++) d->backend->stream_wait(&d->env, d->streams[role]);
  for (size_t i = 0; i < times->marks.n; i++) {
    if (times->marks.v[i].from != NULL) d->backend->event_delete(&d->env, times->marks.v[i].from);
    if (times->marks.v[i].to != NULL) d->backend->event_delete(&d->env, times->marks.v[i].to);
  }
  for (int32_t role = 0; role < TN_STREAMS; role++)
    if (times->base[role] != NULL) d->backend->event_delete(&d->env, times->base[role]);
  tn_vec_free(&d->env, &times->marks);
  tn_release(e->env, times);
  e->times = NULL;
}

static tn_status profile_begin(tn_executor *e, tn_executor_times *times) {
  tn_device *d = e->device;
  times->clock = d->backend->event_seconds != NULL;
  for (int32_t role = 0; role < TN_STREAMS && times->clock; role++)
    TN_TRY(d->backend->event_new(&d->env, d->device, &times->base[role]));
  return profile_read(e, times);
}

tn_status tn_executor_profile(tn_executor *e, tn_timeline *timeline) {
  profile_end(e);
  if (timeline == NULL) return TN_OK;
  e->times = tn_alloc(e->env, sizeof *e->times);
  if (e->times == NULL) return TN_ENOMEM;
  e->times->timeline = timeline;
  tn_status status = profile_begin(e, e->times);
  if (status == TN_OK) return TN_OK;
  profile_end(e);
  return tn_executor_fail(e, status);
}

tn_status tn_executor_profile_read(tn_executor *e) {
  tn_status status = e->times != NULL ? profile_read(e, e->times) : TN_OK;
  return status == TN_OK ? TN_OK : tn_executor_fail(e, status);
}

tn_status tn_profile_make_room(tn_executor *e) {
  return e->times != NULL && e->times->used >= MOST_UNREAD ? profile_read(e, e->times) : TN_OK;
}

bool tn_executor_has_clock(const tn_executor *e) { return e->device->backend->event_seconds != NULL; }
