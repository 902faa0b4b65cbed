/* backends/sim/capture.c: begin, end, launch and deletion of a capture. Between begin and end the host's
 * calls record work (recording.c), and nothing runs. The capturing stream must await the others before the
 * end. The replaying stream alone orders a replay with other work. */
#include "backends/sim/callbacks.h"
#include "backends/sim/capture.h"

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

tn_status tn_sim_capture_work(tn_env *env, void *device, void *stream, tn_status (*work)(void *arg),
                              void *arg, void **capture) {
  *capture = NULL;
  if (tn_sim_rehearses(device))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: a rehearsal captures nothing");
  if (tn_sim_fault(device, TN_SIM_FAIL_CAPTURE))
    return tn_fail(env, TN_EUNSUPPORTED, NULL, "sim: this capture was asked to fail");
  TN_TRY(tn_sim_capture_begin(env, device, stream));
  tn_status enqueued = work(arg), ended = tn_sim_capture_end(env, device, stream, capture);
  return enqueued != TN_OK ? enqueued : ended;
}

tn_status tn_sim_capture_launch(tn_env *env, void *capture, void *stream) {
  tn_sim_work work = {.kind = TN_SIM_REPLAY};
  work.capture = capture;
  tn_sim_stream *s = stream;
  s->device->replays++;
  return tn_sim_push(env, stream, &work, NULL);
}
