/* backends/sim/engine/engine.c: the thread of a device. It takes one piece of work at a time from the head of
 * a stream that can go on, in one of three orders: as the host enqueued (eager), only what the host waits for
 * and what that needs (lazy), or by lot, with pauses (random). Since one thread does all of a device's work,
 * a missing wait shows as a wrong order, never as a data race in this program. */
#include <string.h>
#include <time.h>

#include "backends/sim/capture.h"

enum {
  MOST_HEADS = 64,
  PENDING_MICROS = 200, /* until a task that could not end is asked again */
  IDLE_MICROS = 20000   /* a lazy device goes on by itself when the host has been silent for so long */
};

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t draw(tn_sim_device *d) {
  uint64_t x = d->chance += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static tn_sim_work *head_of(const tn_sim_queue *q) {
  uint64_t head = atomic_load(&q->head);
  return head < atomic_load(&q->tail) ? &q->items[head % q->capacity] : NULL;
}

/* ---- choosing ---- */

/* The queues whose heads can run now; those that answered TN_SIM_PENDING last time only if `again`. */
typedef struct heads {
  tn_sim_queue *v[MOST_HEADS];
  int32_t n;
} heads;

static void add_head(heads *h, tn_sim_queue *q, bool again) {
  tn_sim_work *work = head_of(q);
  if (work == NULL || (q->pending && !again) || h->n == MOST_HEADS) return;
  if (tn_sim_work_ready(q, work)) h->v[h->n++] = q;
}

/* The capture that a stream is replaying, or NULL. */
static tn_sim_capture *replay_of(const tn_sim_stream *s) {
  const tn_sim_work *work = head_of(&s->ring);
  return work != NULL && work->what == TN_SIM_REPLAY && work->begun ? work->capture : NULL;
}

static void gather_stream(heads *h, tn_sim_stream *s, bool again) {
  tn_sim_capture *capture = replay_of(s);
  if (capture == NULL) add_head(h, &s->ring, again);
  for (int32_t i = 0; capture != NULL && i < TN_SIM_STREAMS; i++) add_head(h, &capture->lanes[i], again);
}

/* When the host enqueued the head. */
static uint64_t number_of(const tn_sim_queue *q) {
  return q->capture != NULL ? q->capture->number : head_of(q)->number;
}

static void gather_all(tn_sim_device *d, heads *h, bool again) {
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++) gather_stream(h, &d->streams[i], again);
}

/* From a stream that the host waits for to the streams that hold it up. */
static void gather_wanted(tn_sim_device *d, heads *h, bool again) {
  bool asked[TN_SIM_STREAMS] = {false};
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++)
    asked[i] = atomic_load(&d->streams[i].ring.head) < atomic_load(&d->streams[i].wanted);
  for (bool more = true; more;) {
    more = false;
    for (int32_t i = 0; i < n; i++) {
      tn_sim_work *work = asked[i] ? head_of(&d->streams[i].ring) : NULL;
      if (work == NULL || work->what != TN_SIM_AWAIT || asked[work->event.from->index]) continue;
      if (!tn_sim_work_ready(&d->streams[i].ring, work)) more = asked[work->event.from->index] = true;
    }
  }
  for (int32_t i = 0; i < n; i++)
    if (asked[i]) gather_stream(h, &d->streams[i], again);
}

static tn_sim_queue *choose(tn_sim_device *d, bool again) {
  heads h = {.n = 0};
  if (d->backend->options.order == TN_SIM_LAZY)
    gather_wanted(d, &h, again);
  else
    gather_all(d, &h, again);
  if (h.n == 0) return NULL;
  if (d->backend->options.order == TN_SIM_RANDOM) return h.v[draw(d) % (uint64_t)h.n];
  tn_sim_queue *first = h.v[0];
  for (int32_t i = 1; i < h.n; i++)
    if (number_of(h.v[i]) < number_of(first)) first = h.v[i];
  return first;
}

/* Now and then the whole device pauses, so that the host gets ahead of it. */
static void pause_by_lot(tn_sim_device *d) {
  if (d->backend->options.order != TN_SIM_RANDOM || draw(d) % 16 != 0) return;
  struct timespec pause = {0, (long)(draw(d) % 100000)};
  nanosleep(&pause, NULL);
}

/* ---- running ---- */

static void end_replay(tn_sim_capture *capture, tn_sim_stream *stream) {
  if (!tn_sim_capture_done(capture)) return;
  capture->running = false;
  stream->ring.pending = false;
  atomic_fetch_add(&stream->ring.head, 1);
}

static void pop(tn_sim_queue *q) {
  q->pending = false;
  atomic_fetch_add(&q->head, 1);
  if (q->capture != NULL) end_replay(q->capture, q->stream);
  tn_sim_signal_raise(&q->stream->device->progress);
}

static void run_head(tn_sim_device *d, tn_sim_queue *q) {
  tn_sim_work *work = head_of(q);
  pause_by_lot(d);
  tn_status status = tn_sim_work_run(q, work);
  q->pending = status == TN_SIM_PENDING;
  if (q->pending) return;
  if (status != TN_OK)
    tn_sim_failure_set(&q->stream->failure, status == TN_ECOMM ? status : TN_EDEVICE, d->report.text);
  pop(q);
}

static bool any_pending(tn_sim_device *d) {
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++)
    if (d->streams[i].ring.pending) return true;
  return false;
}

/* Nobody may have to wait for a host that does not wait: another device may need what is enqueued here. */
static void want_everything(tn_sim_device *d) {
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++) {
    uint64_t tail = atomic_load(&d->streams[i].ring.tail), wanted = atomic_load(&d->streams[i].wanted);
    while (wanted < tail && !atomic_compare_exchange_weak(&d->streams[i].wanted, &wanted, tail)) {
    }
  }
}

static void rest(tn_sim_device *d, uint32_t seen) {
  bool lazy = d->backend->options.order == TN_SIM_LAZY;
  tn_sim_signal_wait(&d->work, seen, any_pending(d) ? PENDING_MICROS : lazy ? IDLE_MICROS : -1);
  if (lazy && tn_sim_signal_read(&d->work) == seen) want_everything(d);
}

void *tn_sim_engine(void *device) {
  tn_sim_device *d = device;
  bool again = false;
  for (;;) {
    uint32_t seen = tn_sim_signal_read(&d->work);
    if (atomic_load(&d->stop)) return NULL;
    tn_sim_queue *q = choose(d, again);
    again = false;
    if (q != NULL) {
      run_head(d, q);
      continue;
    }
    rest(d, seen);
    again = true;
  }
}
