/* backends/sim/engine/rehearsal.c: a rehearsal: streams, events and collectives as in a run, in a time of
 * their own. Each queue has a clock. A kernel or a collective moves it by its predicted time, and a copy
 * between host and device by that of its bytes over the link, where it is known; a record keeps it, and an
 * await sets it to that of the record, if that is later. So the times are those of the order that the host
 * has asked for, and neither the processors nor the order of the engine change them. */
#include <string.h>

#include "backends/sim/sim.h"
#include "tenon/random.h"

/* A factor around 1, the same in every run: the n-th kernel of a device. */
static double rehearsal_factor(tn_sim_device *d) {
  double jitter = d->backend->options.jitter;
  if (jitter == 0) return 1;
  tn_rng rng = tn_rng_at((uint64_t)d->backend->options.seed * 64 + (uint64_t)d->index, d->jitter++);
  return 1 + jitter * (2 * tn_rng_uniform(&rng) - 1);
}

static void rehearse_record(tn_sim_queue *q, tn_sim_work *work) {
  tn_sim_event *e = work->event.event;
  e->clocks[work->event.ticket % TN_SIM_TICKETS] = *q->clock;
  e->times_s[work->event.ticket % TN_SIM_TICKETS] = e->reached_s = q->now_s;
  atomic_store(&e->done, work->event.ticket);
}

static void rehearse_await(tn_sim_queue *q, const tn_sim_work *work) {
  const tn_sim_event *e = work->event.event;
  double end = e->times_s[work->event.ticket % TN_SIM_TICKETS];
  if (end > q->now_s) q->now_s = end;
}

static tn_status rehearse_task(tn_sim_device *d, tn_sim_work *work) {
  if (!work->begun) memcpy(work->task.now, work->task.arg, sizeof work->task.arg);
  work->begun = true;
  tn_env env = tn_sim_engine_env(d);
  return work->task.task.body(&env, work->task.now);
}

static void rehearse_copy(tn_sim_queue *q, const tn_sim_work *work) {
  double rate = q->stream->device->backend->options.link;
  if (rate > 0 && work->copy.direction != TN_COPY_ON_DEVICE) q->now_s += (double)work->copy.bytes / rate;
}

tn_status tn_sim_rehearse(tn_sim_queue *q, tn_sim_work *work) {
  tn_sim_device *d = q->stream->device;
  switch (work->kind) {
  case TN_SIM_RECORD: return rehearse_record(q, work), TN_OK;
  case TN_SIM_AWAIT: return rehearse_await(q, work), TN_OK;
  case TN_SIM_COPY: return rehearse_copy(q, work), TN_OK;
  case TN_SIM_TASK: return rehearse_task(d, work);
  case TN_SIM_LAUNCH: return q->now_s += work->launch.l->cost_s * rehearsal_factor(d), TN_OK;
  default: return TN_OK;
  }
}
