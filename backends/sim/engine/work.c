/* backends/sim/engine/work.c: runs work on the engine. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/shared/clock.h"
#include "backends/sim/capture.h"

/* ---- failing ---- */

static tn_status work_failed(tn_sim_device *d, tn_status code, const char *format, ...) TN_PRINTF(3, 4);
static tn_status work_failed(tn_sim_device *d, tn_status code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(d->report.text, sizeof d->report.text, format, args);
  va_end(args);
  return code;
}

/* Puts "sim: 'conv2d of conv1': " in front of the work's own text. */
static tn_status work_blame(tn_sim_device *d, const tn_sim_work *work, tn_status code, const char *nothing) {
  char name[256], text[sizeof d->report.text];
  tn_sim_work_name(work, name, sizeof name);
  memcpy(text, d->report.text, sizeof text);
  return work_failed(d, code, "sim: '%s' on device %d: %.700s", name, d->index,
                     text[0] != '\0' ? text : nothing);
}

/* ---- the kinds of work ---- */

/* Whether the compute stream has work that was enqueued before. */
static bool work_is_beside_computing(const tn_sim_device *d, uint64_t number) {
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++) {
    const tn_sim_queue *q = &d->streams[i].ring;
    uint64_t head = atomic_load(&q->head);
    bool computes = d->streams[i].open && d->streams[i].role == TN_STREAM_COMPUTE;
    if (computes && head < atomic_load(&q->tail) && q->items[head % q->capacity].number < number) return true;
  }
  return false;
}

static tn_status work_run_copy(tn_sim_device *d, const tn_sim_work *work) {
  bool in = work->copy.direction == TN_COPY_TO_DEVICE;
  d->copies_in += in;
  d->copies_beside += in && work_is_beside_computing(d, work->number);
  memmove(tn_sim_real(work->copy.to), tn_sim_real(work->copy.from), (size_t)work->copy.bytes);
  if (work->copy.direction == TN_COPY_TO_HOST) tn_sim_race_copied(d, work);
  return TN_OK;
}

static tn_status work_reserve_views(tn_sim_device *d, int32_t n) {
  if (n <= d->views_capacity) return TN_OK;
  tn_view *views = realloc(d->views, sizeof *views * (size_t)n * 2);
  if (views == NULL) return work_failed(d, TN_ENOMEM, "no memory for %d views", n);
  d->views = views;
  d->views_capacity = 2 * n;
  return TN_OK;
}

/* The time of a kernel: where other programs take the processor from it, that is no part of its work, and a
 * slow device would multiply it. */
static double work_processor_s(void) { return tn_clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

/* Short sleeps are long ones in truth, so that they are put together. */
static void work_slow_down(tn_sim_device *d, double took_s) {
  d->behind_s += (d->backend->faults.factor - 1) * took_s;
  if (d->behind_s < 300e-6) return;
  double start_s = tn_monotonic_s();
  struct timespec pause = {(time_t)d->behind_s, (long)((d->behind_s - (double)(time_t)d->behind_s) * 1e9)};
  nanosleep(&pause, NULL);
  d->behind_s -= tn_monotonic_s() - start_s;
}

static tn_status work_run_launch(tn_sim_device *d, const tn_sim_work *work) {
  const tn_launch *l = work->launch.l;
  int32_t n = l->n_in + l->n_out;
  TN_TRY(work_reserve_views(d, n));
  for (int32_t i = 0; i < n; i++) {
    d->views[i] = i < l->n_in ? l->in[i] : l->out[i - l->n_in];
    d->views[i].data = tn_sim_real(d->views[i].data);
  }
  tn_launch here = *l;
  here.env = tn_sim_engine_env(d);
  here.struct_size = sizeof here;
  here.in = d->views;
  here.out = d->views + l->n_in;
  here.workspace = tn_sim_real(l->workspace);
  here.folded = tn_sim_real(l->folded);
  if (d->backend->faults.slow != d->index) return work->launch.body(&here);
  double start_s = work_processor_s();
  tn_status status = work->launch.body(&here);
  work_slow_down(d, work_processor_s() - start_s);
  return status;
}

static tn_status work_run_task(tn_sim_device *d, tn_sim_work *work) {
  if (!work->begun) memcpy(work->task.now, work->task.arg, sizeof work->task.arg);
  work->begun = true;
  tn_env env = tn_sim_engine_env(d);
  return work->task.task.body(&env, work->task.now);
}

/* The clock is written before `done`, which allows reading it. */
static void work_run_record(tn_sim_queue *q, tn_sim_work *work) {
  tn_sim_event *e = work->event.event;
  e->clocks[work->event.ticket % TN_SIM_TICKETS] = *q->clock;
  if (atomic_load(&q->stream->failure.code) != TN_OK) atomic_store(&e->failure, &q->stream->failure);
  e->reached_s = tn_monotonic_s();
  atomic_store(&e->done, work->event.ticket);
}

static tn_status work_run_await(tn_sim_queue *q, const tn_sim_work *work) {
  tn_sim_event *e = work->event.event;
  tn_sim_clock_join(q->clock, &e->clocks[work->event.ticket % TN_SIM_TICKETS]);
  const tn_sim_failure *failure = atomic_load(&e->failure);
  if (failure == NULL) return TN_OK;
  return work_failed(q->stream->device, atomic_load(&failure->code), "%s", failure->text);
}

/* ---- running ---- */

bool tn_sim_work_ready(const tn_sim_queue *queue, const tn_sim_work *work) {
  switch (work->kind) {
  case TN_SIM_AWAIT: return atomic_load(&work->event.event->done) >= work->event.ticket;
  case TN_SIM_JOIN: return queue->capture->marks[work->mark].done;
  case TN_SIM_REPLAY: return !work->capture->running;
  default: return true;
  }
}

/* Starts a replay. The last lane that ends pops the work; an empty capture is done at once. */
static tn_status work_run_replay(tn_sim_queue *q, tn_sim_work *work) {
  tn_sim_capture_start(work->capture, q->stream, work);
  work->begun = true;
  work->capture->running = !tn_sim_capture_done(work->capture);
  return work->capture->running ? TN_SIM_PENDING : TN_OK;
}

static void work_run_mark(tn_sim_queue *q, const tn_sim_work *work) {
  tn_sim_mark *mark = &q->capture->marks[work->mark];
  mark->clock = *q->clock;
  mark->done = true;
}

/* The work that touches memory. */
static tn_status work_run_body(tn_sim_device *d, tn_sim_work *work) {
  switch (work->kind) {
  case TN_SIM_COPY: return work_run_copy(d, work);
  case TN_SIM_ZERO: return memset(tn_sim_real(work->copy.to), 0, (size_t)work->copy.bytes), TN_OK;
  case TN_SIM_LAUNCH: return work_run_launch(d, work);
  default: return work_run_task(d, work);
  }
}

static bool work_fails(tn_sim_device *d, const tn_sim_work *work) {
  bool device = tn_sim_fault(d, TN_SIM_FAIL_DEVICE);
  bool copy = work->kind == TN_SIM_COPY && tn_sim_fault(d, TN_SIM_FAIL_COPY);
  bool kernel = work->kind == TN_SIM_LAUNCH && tn_sim_fault(d, TN_SIM_FAIL_KERNEL);
  return device || copy || kernel;
}

/* The fault `device`: all streams fail. */
static void work_break_device(tn_sim_device *d) {
  int64_t at = d->backend->faults.at[TN_SIM_FAIL_DEVICE];
  if (at == 0 || atomic_load(&d->seen[TN_SIM_FAIL_DEVICE]) != at) return;
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++)
    tn_sim_failure_set(&d->streams[i].failure, TN_EDEVICE, d->report.text);
}

static tn_status work_run_memory(tn_sim_queue *q, tn_sim_work *work) {
  tn_sim_device *d = q->stream->device;
  if (!work->begun && work_fails(d, work)) {
    tn_status status = work_blame(d, work, TN_EDEVICE, "was made to fail");
    work_break_device(d);
    return status;
  }
  tn_status status = work->begun ? TN_OK : tn_sim_race_check(q, work);
  if (status == TN_OK) status = work_run_body(d, work);
  if (status == TN_OK || status == TN_SIM_PENDING) return status;
  return work_blame(d, work, status, "failed and did not say why");
}

/* The faults `stall` and `hang`: from the N-th kernel on the device computes nothing, as one that has stopped
 * answering. */
static bool work_stalls(tn_sim_device *d, const tn_sim_work *work) {
  if (work->kind != TN_SIM_LAUNCH) return false;
  if (!d->stalled) d->stalled = tn_sim_fault(d, TN_SIM_FAIL_STALL);
  if (!d->hung) d->hung = tn_sim_fault(d, TN_SIM_FAIL_HANG);
  return d->hung || (d->stalled && !atomic_load(&d->released));
}

tn_status tn_sim_work_run(tn_sim_queue *q, tn_sim_work *work) {
  tn_sim_device *d = q->stream->device;
  d->report.text[0] = '\0';
  bool skipped = atomic_load(&q->stream->failure.code) != TN_OK;
  if (!skipped && work_stalls(d, work)) return TN_SIM_PENDING;
  if (tn_sim_rehearses(d)) return skipped && work->kind != TN_SIM_RECORD ? TN_OK : tn_sim_rehearse(q, work);
  if (!work->begun) {
    tn_sim_clock_join(q->clock, &work->host);
    q->clock->at[q->clock_index] = ++d->times[q->clock_index];
  }
  if (work->kind == TN_SIM_RECORD) return work_run_record(q, work), TN_OK;
  if (work->kind == TN_SIM_MARK) return work_run_mark(q, work), TN_OK;
  if (skipped) return TN_OK;
  switch (work->kind) {
  case TN_SIM_AWAIT: return work_run_await(q, work);
  case TN_SIM_JOIN: return tn_sim_clock_join(q->clock, &q->capture->marks[work->mark].clock), TN_OK;
  case TN_SIM_REPLAY: return work_run_replay(q, work);
  default: return work_run_memory(q, work);
  }
}
