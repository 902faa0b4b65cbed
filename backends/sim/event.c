/* backends/sim/event.c: events. Each record has a ticket; an await is for the last ticket at the time of the
 * call. The ticket carries the clock of the recording stream, which the awaiting stream joins. */
#include "backends/sim/callbacks.h"
#include "backends/sim/capture.h"

tn_status tn_sim_event_new(tn_env *env, void *device, void **event) {
  *event = NULL;
  tn_sim_event *e = tn_new(env, sizeof *e);
  if (e == NULL) return TN_ENOMEM;
  e->device = device;
  *event = e;
  return TN_OK;
}

void tn_sim_event_delete(tn_env *env, void *event) {
  tn_sim_event *e = event;
  if (e == NULL) return;
  tn_sim_finish(e->device);
  tn_delete(env, e);
}

static tn_status event_refuse_captured(tn_env *env) {
  return tn_fail(env, TN_EDEVICE, NULL,
                 "sim: the event was last recorded inside captured work; only that can await it");
}

tn_status tn_sim_event_record(tn_env *env, void *event, void *stream) {
  tn_sim_event *e = event;
  tn_sim_stream *s = stream;
  if (tn_sim_fault(e->device, TN_SIM_DROP_RECORD)) return tn_sim_stream_status(env, s);
  if (s->device->capturing != NULL) return tn_sim_capture_record(env, e, s);
  tn_sim_work work = {.kind = TN_SIM_RECORD};
  work.event.event = e;
  work.event.ticket = e->recorded + 1;
  TN_TRY(tn_sim_push(env, s, &work, &e->position));
  e->recorded++;
  e->captured = 0;
  e->from = s;
  return TN_OK;
}

tn_status tn_sim_event_await(tn_env *env, void *event, void *stream) {
  const tn_sim_event *e = event;
  tn_sim_stream *s = stream;
  if (e->device != s->device)
    return tn_fail(env, TN_EUNSUPPORTED, NULL,
                   "sim: a stream of device %d cannot await an event of device %d", s->device->index,
                   e->device->index);
  bool never = e->recorded == 0 && e->captured == 0;
  if (never || tn_sim_fault(e->device, TN_SIM_DROP_AWAIT)) return tn_sim_stream_status(env, s);
  if (s->device->capturing != NULL) return tn_sim_capture_await(env, e, s);
  if (e->captured != 0) return event_refuse_captured(env);
  tn_sim_work work = {.kind = TN_SIM_AWAIT};
  work.event.event = event;
  work.event.ticket = e->recorded;
  work.event.from = e->from;
  work.event.position = e->position;
  return tn_sim_push(env, s, &work, NULL);
}

/* The last record is done. */
static tn_status event_end_wait(tn_env *env, tn_sim_event *e) {
  tn_sim_clock_join(&e->device->host, &e->clocks[e->recorded % TN_SIM_TICKETS]);
  const tn_sim_failure *failure = atomic_load(&e->failure);
  return failure == NULL ? TN_OK : tn_fail(env, atomic_load(&failure->code), NULL, "%s", failure->text);
}

tn_status tn_sim_event_wait(tn_env *env, void *event) {
  tn_sim_event *e = event;
  if (e->captured != 0) return event_refuse_captured(env);
  if (e->recorded == 0 || tn_sim_fault(e->device, TN_SIM_DROP_WAIT)) return TN_OK;
  tn_sim_reach(e->from, e->position);
  return event_end_wait(env, e);
}

tn_status tn_sim_event_done(tn_env *env, void *event, int32_t *done) {
  tn_sim_event *e = event;
  *done = 1;
  if (e->captured != 0) return event_refuse_captured(env);
  if (e->recorded == 0) return TN_OK;
  *done = tn_sim_reached(e->from, e->position);
  return *done ? event_end_wait(env, e) : TN_OK;
}

tn_status tn_sim_event_seconds(tn_env *env, void *from, void *to, double *seconds) {
  const tn_sim_event *a = from, *b = to;
  if (a->recorded == 0 || atomic_load(&a->done) < a->recorded || b->recorded == 0 ||
      atomic_load(&b->done) < b->recorded)
    return tn_fail(env, TN_EDEVICE, NULL, "sim: the time between events that are not both done");
  if (a->captured != 0 || b->captured != 0) return event_refuse_captured(env);
  *seconds = b->reached_s - a->reached_s;
  return TN_OK;
}
