/* backends/sim/engine/engine.c: the thread of a device. It runs one piece of work at a time, from the head of
 * a stream whose head is ready, in one of three orders: oldest first (eager), only work that the host waits
 * for (lazy), or random, with pauses. One thread does all work of a device, so a missing wait causes a wrong
 * order and no data race in this process. */
#include <time.h>

#include "backends/sim/capture.h"

enum {
  MOST_HEADS = 64,
  PENDING_MICROS = 200, /* until a pending task runs again */
  IDLE_MICROS = 20000   /* until an idle lazy device runs everything */
};

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t engine_draw(tn_sim_device *d) {
  uint64_t x = d->chance += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static tn_sim_work *engine_head(const tn_sim_queue *q) {
  uint64_t head = atomic_load(&q->head);
  return head < atomic_load(&q->tail) ? &q->items[head % q->capacity] : NULL;
}

/* ---- choosing ---- */

/* The queues whose heads are ready; a pending one once in a round, so that none keeps another from its turn.
 */
typedef struct heads {
  tn_sim_queue *v[MOST_HEADS];
  int32_t n;
  uint64_t round;
} heads;

static void engine_add_head(heads *h, tn_sim_queue *q) {
  tn_sim_work *work = engine_head(q);
  if (work == NULL || (q->pending && q->polled == h->round) || h->n == MOST_HEADS) return;
  if (tn_sim_work_ready(q, work)) h->v[h->n++] = q;
}

/* The capture that a stream is replaying, or NULL. */
static tn_sim_capture *engine_replay(const tn_sim_stream *s) {
  const tn_sim_work *work = engine_head(&s->ring);
  return work != NULL && work->kind == TN_SIM_REPLAY && work->begun ? work->capture : NULL;
}

static void engine_gather_stream(heads *h, tn_sim_stream *s) {
  tn_sim_capture *capture = engine_replay(s);
  if (capture == NULL) engine_add_head(h, &s->ring);
  for (int32_t i = 0; capture != NULL && i < TN_SIM_STREAMS; i++) engine_add_head(h, &capture->lanes[i]);
}

/* Number of the head in the order of enqueuing. */
static uint64_t engine_head_number(const tn_sim_queue *q) {
  return q->capture != NULL ? q->capture->number : engine_head(q)->number;
}

static void engine_gather_all(tn_sim_device *d, heads *h) {
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++) engine_gather_stream(h, &d->streams[i]);
}

/* The streams that the host waits for, and those that they await. */
static void engine_gather_wanted(tn_sim_device *d, heads *h) {
  bool asked[TN_SIM_STREAMS] = {false};
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++)
    asked[i] = atomic_load(&d->streams[i].ring.head) < atomic_load(&d->streams[i].wanted);
  for (bool more = true; more;) {
    more = false;
    for (int32_t i = 0; i < n; i++) {
      tn_sim_work *work = asked[i] ? engine_head(&d->streams[i].ring) : NULL;
      if (work == NULL || work->kind != TN_SIM_AWAIT || asked[work->event.from->index]) continue;
      if (!tn_sim_work_ready(&d->streams[i].ring, work)) more = asked[work->event.from->index] = true;
    }
  }
  for (int32_t i = 0; i < n; i++)
    if (asked[i]) engine_gather_stream(h, &d->streams[i]);
}

static tn_sim_queue *engine_choose(tn_sim_device *d) {
  heads h = {.round = d->round};
  if (d->backend->options.order == TN_SIM_LAZY)
    engine_gather_wanted(d, &h);
  else
    engine_gather_all(d, &h);
  if (h.n == 0) return NULL;
  if (d->backend->options.order == TN_SIM_RANDOM) return h.v[engine_draw(d) % (uint64_t)h.n];
  tn_sim_queue *first = h.v[0];
  for (int32_t i = 1; i < h.n; i++)
    if (engine_head_number(h.v[i]) < engine_head_number(first)) first = h.v[i];
  return first;
}

/* Random order: the device pauses sometimes, so that the host gets ahead of it. */
static void engine_pause_randomly(tn_sim_device *d) {
  if (d->backend->options.order != TN_SIM_RANDOM || engine_draw(d) % 16 != 0) return;
  struct timespec pause = {0, (long)(engine_draw(d) % 100000)};
  nanosleep(&pause, NULL);
}

/* ---- running ---- */

static void engine_end_replay(tn_sim_capture *capture, tn_sim_stream *stream) {
  if (!tn_sim_capture_done(capture)) return;
  capture->running = false;
  stream->ring.pending = false;
  atomic_fetch_add(&stream->ring.head, 1);
}

static void engine_pop(tn_sim_queue *q) {
  q->pending = false;
  atomic_fetch_add(&q->head, 1);
  if (q->capture != NULL) engine_end_replay(q->capture, q->stream);
  tn_sim_signal_raise(&q->stream->device->progress);
}

static void engine_run_head(tn_sim_device *d, tn_sim_queue *q) {
  tn_sim_work *work = engine_head(q);
  engine_pause_randomly(d);
  tn_status status = tn_sim_work_run(q, work);
  q->pending = status == TN_SIM_PENDING;
  q->polled = d->round;
  if (q->pending) return;
  if (status != TN_OK)
    tn_sim_failure_set(&q->stream->failure, status == TN_ECOMM ? status : TN_EDEVICE, d->report.text);
  engine_pop(q);
}

static bool engine_any_pending(tn_sim_device *d) {
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++)
    if (d->streams[i].ring.pending) return true;
  return false;
}

/* Lazy order: after a while without waits of the host, all work is wanted, since another device may depend on
 * it. */
static void engine_want_everything(tn_sim_device *d) {
  int32_t n = atomic_load(&d->n_streams);
  for (int32_t i = 0; i < n; i++) {
    uint64_t tail = atomic_load(&d->streams[i].ring.tail), wanted = atomic_load(&d->streams[i].wanted);
    while (wanted < tail && !atomic_compare_exchange_weak(&d->streams[i].wanted, &wanted, tail)) {
    }
  }
}

static void engine_rest(tn_sim_device *d, uint32_t seen) {
  bool lazy = d->backend->options.order == TN_SIM_LAZY;
  tn_sim_signal_wait(&d->work, seen, engine_any_pending(d) ? PENDING_MICROS : lazy ? IDLE_MICROS : -1);
  if (lazy && tn_sim_signal_read(&d->work) == seen) engine_want_everything(d);
}

void *tn_sim_engine(void *device) {
  tn_sim_device *d = device;
  for (;;) {
    uint32_t seen = tn_sim_signal_read(&d->work);
    if (atomic_load(&d->stop)) return NULL;
    tn_sim_queue *q = engine_choose(d);
    if (q != NULL) {
      engine_run_head(d, q);
      continue;
    }
    engine_rest(d, seen);
    d->round++;
  }
}
