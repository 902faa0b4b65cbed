/* backends/tcp/worker.c: the thread that runs a rank's collectives, in their order, and between them receives
 * notes of other ranks. It never blocks but in poll, where a write to t->wake ends its wait. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp.h"

/* A wait in poll lasts at most so long. A pause that is much longer was one of this process, which was
 * stopped: it does not count against other ranks. */
enum { WORKER_POLL_MS = 500, WORKER_PAUSE_S = 2 };
/* A rank that cannot tell which of several ranks is late waits so much longer for those that can. */
#define WORKER_GRACE_S 1.0

/* State of the thread alone. */
typedef struct worker {
  tn_tcp *t;
  double seen_s, skipped_s; /* the last time of the clock, and the seconds that do not count */
  double begun_s, moved_s;  /* of the collective: its begin, and when a byte was moved last */
  bool full[TN_TCP_RANKS];  /* the connection takes no more bytes at present */
  bool told;                /* the other ranks know of the failure */
  bool runs;                /* a collective */
  struct pollfd polled[1 + 2 * TN_TCP_RANKS]; /* wake, and for each rank notes and elements */
} worker;

static double worker_clock_s(worker *w) {
  double now = tn_monotonic_s();
  if (now - w->seen_s > WORKER_PAUSE_S) w->skipped_s += now - w->seen_s;
  w->seen_s = now;
  return now - w->skipped_s;
}

static bool worker_has_failed(const worker *w) { return atomic_load(&w->t->failure.set); }

static const char *worker_call_text(const worker *w, char text[TN_TCP_CALL_TEXT + 32]) {
  char call[TN_TCP_CALL_TEXT];
  snprintf(text, TN_TCP_CALL_TEXT + 32, "collective %llu, %s", (unsigned long long)w->t->announced.number,
           tn_tcp_call_text(&w->t->announced, call));
  return text;
}

/* ---- notes ---- */

static void worker_close_lane(tn_tcp_peer *p, int32_t lane) {
  tn_tcp_close(p->lanes[lane]);
  p->lanes[lane] = -1;
}

static void worker_send_note(const worker *w, int32_t rank, const tn_tcp_note *note) {
  int fd = w->t->peers[rank].lanes[TN_TCP_NOTES];
  if (fd >= 0)
    tn_tcp_send_record(fd, note, sizeof *note); /* notes are few and short: there is room for them */
}

static void worker_answer(const worker *w, int32_t rank) {
  tn_tcp_note note = {.kind = TN_TCP_TELLS, .waits = w->runs};
  tn_tcp_mark(note.magic);
  pthread_mutex_lock(&w->t->lock);
  note.called = w->t->pushed;
  pthread_mutex_unlock(&w->t->lock);
  worker_send_note(w, rank, &note);
}

static void worker_take_note(worker *w, int32_t rank) {
  tn_tcp_peer *p = &w->t->peers[rank];
  char who[TN_TCP_RANK_TEXT];
  p->note_bytes = 0;
  if (!tn_tcp_note_valid(&p->note))
    tn_tcp_fail(w->t, "%s sent bytes that are no note", tn_tcp_rank_text(w->t, rank, who));
  else if (p->note.kind == TN_TCP_FAILED)
    tn_tcp_fail(w->t, "%s", p->note.text);
  else if (p->note.kind == TN_TCP_LEAVES)
    p->left = true;
  else if (p->note.kind == TN_TCP_ASKS)
    worker_answer(w, rank);
  else if (p->asked) /* and not an answer that comes after the collective in which it was asked */
    p->told = true, p->called = p->note.called, p->waits = p->note.waits != 0;
}

/* The connection of notes has ended: after a rank has left, and otherwise when its process ends. */
static void worker_lose_peer(worker *w, int32_t rank) {
  tn_tcp_peer *p = &w->t->peers[rank];
  char who[TN_TCP_RANK_TEXT];
  int error = errno;
  if (!p->left)
    tn_tcp_fail(w->t, "%s is gone: its connections have broken%s%s (last collective here: %llu)",
                tn_tcp_rank_text(w->t, rank, who), error != 0 ? ": " : ", as when its process ends",
                error != 0 ? strerror(error) : "", (unsigned long long)w->t->announced.number);
  worker_close_lane(p, TN_TCP_NOTES);
}

static void worker_hear(worker *w, int32_t rank) {
  tn_tcp_peer *p = &w->t->peers[rank];
  while (p->lanes[TN_TCP_NOTES] >= 0) {
    struct iovec rest = {(char *)&p->note + p->note_bytes, sizeof p->note - p->note_bytes};
    ssize_t got = tn_tcp_receive(p->lanes[TN_TCP_NOTES], &rest, 1);
    if (got == 0) return;
    if (got < 0) return worker_lose_peer(w, rank);
    p->note_bytes += (size_t)got;
    if (p->note_bytes == sizeof p->note) worker_take_note(w, rank);
  }
}

static void worker_hear_all(worker *w) {
  for (int32_t r = 0; r < w->t->ranks; r++)
    if (r != w->t->rank) worker_hear(w, r);
}

static void worker_tell_all(worker *w, int32_t kind) {
  tn_tcp_note note = {.kind = kind};
  tn_tcp_mark(note.magic);
  if (kind == TN_TCP_FAILED) {
    pthread_mutex_lock(&w->t->failure.lock);
    memcpy(note.text, w->t->failure.text, sizeof note.text);
    pthread_mutex_unlock(&w->t->failure.lock);
  }
  for (int32_t r = 0; r < w->t->ranks; r++)
    if (r != w->t->rank) worker_send_note(w, r, &note);
}

/* ---- elements ---- */

/* A note that says why may lie on another connection. */
static void worker_break_elements(worker *w, int32_t rank) {
  int error = errno;
  char who[TN_TCP_RANK_TEXT], call[TN_TCP_CALL_TEXT + 32];
  worker_hear_all(w);
  tn_tcp_rank_text(w->t, rank, who);
  worker_call_text(w, call);
  if (w->t->peers[rank].left)
    tn_tcp_fail(w->t, "%s has closed its communicator and does not come to %s", who, call);
  else
    tn_tcp_fail(w->t, "%s is gone: its connection broke in %s%s%s", who, call, error != 0 ? ": " : "",
                error != 0 ? strerror(error) : "");
}

static void worker_count_moved(worker *w, int32_t rank, ssize_t moved) {
  if (moved > 0) w->moved_s = worker_clock_s(w);
  if (moved < 0) worker_break_elements(w, rank);
}

static bool worker_send(worker *w, int32_t rank) {
  tn_tcp_peer *p = &w->t->peers[rank];
  if (w->full[rank] || !tn_tcp_flow_open(&p->out)) return false;
  ssize_t moved = tn_tcp_flow_send(&p->out, p->lanes[TN_TCP_ELEMENTS]);
  w->full[rank] = moved == 0;
  worker_count_moved(w, rank, moved);
  return moved > 0;
}

static void worker_receive(worker *w, int32_t rank) {
  tn_tcp_peer *p = &w->t->peers[rank];
  worker_count_moved(w, rank, tn_tcp_flow_receive(&p->in, p->lanes[TN_TCP_ELEMENTS]));
}

/* ---- poll ---- */

static void worker_watch(worker *w, bool running) {
  const tn_tcp *t = w->t;
  w->polled[0] = (struct pollfd){.fd = t->wake, .events = POLLIN};
  for (int32_t r = 0; r < t->ranks; r++) {
    const tn_tcp_peer *p = &t->peers[r];
    struct pollfd *notes = &w->polled[1 + 2 * r], *elements = notes + 1;
    *notes = *elements = (struct pollfd){.fd = -1};
    if (r == t->rank || worker_has_failed(w)) continue;
    *notes = (struct pollfd){.fd = p->lanes[TN_TCP_NOTES], .events = POLLIN};
    if (!running) continue;
    if (tn_tcp_flow_open(&p->in)) elements->events |= POLLIN;
    if (tn_tcp_flow_open(&p->out)) elements->events |= POLLOUT;
    if (elements->events != 0) elements->fd = p->lanes[TN_TCP_ELEMENTS];
  }
}

static void worker_drain_wake(const worker *w) {
  uint64_t times;
  if (w->polled[0].revents != 0 && read(w->t->wake, &times, sizeof times) < 0) return;
}

/* During a collective the times of the others are looked at, between collectives there is nothing to look at.
 */
static int worker_poll_ms(const worker *w, bool running) {
  double quarter_ms = 250 * w->t->timeout_s;
  if (!running) return -1;
  return quarter_ms < 1 ? 1 : quarter_ms < WORKER_POLL_MS ? (int)quarter_ms : WORKER_POLL_MS;
}

/* Waits until there is something to do, and receives it. */
static void worker_wait(worker *w, bool running) {
  worker_watch(w, running);
  int32_t n = 1 + 2 * w->t->ranks;
  int ready = poll(w->polled, (nfds_t)n, worker_poll_ms(w, running));
  if (ready < 0 && errno != EINTR && errno != EAGAIN)
    tn_tcp_fail(w->t, "rank %d cannot wait for %d sockets: %s", (int)w->t->rank, (int)n, strerror(errno));
  if (ready <= 0) return;
  worker_drain_wake(w);
  for (int32_t r = 0; r < w->t->ranks; r++) {
    const struct pollfd *notes = &w->polled[1 + 2 * r], *elements = notes + 1;
    if (notes->revents != 0) worker_hear(w, r);
    if ((elements->revents & (POLLOUT | POLLERR | POLLHUP)) != 0) w->full[r] = false;
    if ((elements->revents & ~POLLOUT) != 0 && !worker_has_failed(w)) worker_receive(w, r);
  }
}

/* ---- lateness ---- */

/* How much this rank knows about a rank that it waits for. */
enum {
  LATE_ABSENT = 0,  /* it has not come to the collective */
  LATE_OPERAND = 1, /* its operand has not come as a whole */
  LATE_RESULT = 2,  /* it may itself wait for another rank */
  LATE_NO = 3
};

static int32_t worker_lateness(const tn_tcp *t, int32_t rank) {
  const tn_tcp_peer *p = &t->peers[rank];
  if (p->in.at == 0) return LATE_ABSENT;
  if (!tn_tcp_flow_open(&p->in)) return tn_tcp_flow_open(&p->out) ? LATE_RESULT : LATE_NO;
  return p->in.at == 1 && p->in.pieces[1].ring > 0 ? LATE_OPERAND : LATE_RESULT;
}

/* Half of the time before late ranks are named, they are asked whether they are alive. */
static void worker_ask_late(worker *w, int32_t lateness) {
  tn_tcp_note note = {.kind = TN_TCP_ASKS};
  tn_tcp_mark(note.magic);
  for (int32_t r = 0; r < w->t->ranks; r++) {
    tn_tcp_peer *p = &w->t->peers[r];
    if (r == w->t->rank || p->asked || worker_lateness(w->t, r) != lateness) continue;
    p->asked = true;
    worker_send_note(w, r, &note);
  }
}

/* "rank 2 (10.0.0.3:4711), whose process has called 16 collectives" */
static size_t worker_print_late(const tn_tcp *t, int32_t rank, char *text, size_t size) {
  const tn_tcp_peer *p = &t->peers[rank];
  char who[TN_TCP_RANK_TEXT], alive[64] = "";
  if (p->told && p->waits)
    snprintf(alive, sizeof alive, ", whose process waits in an earlier collective,");
  else if (p->told)
    snprintf(alive, sizeof alive, ", whose process has called %llu collectives,",
             (unsigned long long)p->called);
  else if (p->asked)
    snprintf(alive, sizeof alive, ", whose process does not answer,");
  return (size_t)snprintf(text, size, "%s%s", tn_tcp_rank_text(t, rank, who), alive);
}

/* Whether every late rank has said that it waits itself, in an earlier collective. */
static bool worker_all_wait(const tn_tcp *t, int32_t lateness) {
  if (lateness != LATE_ABSENT) return false;
  for (int32_t r = 0; r < t->ranks; r++)
    if (r != t->rank && worker_lateness(t, r) == lateness && !t->peers[r].waits) return false;
  return true;
}

/* "rank 2 (10.0.0.3:4711) and rank 3 (10.0.0.4:4711)". Where some of the late ranks
 * wait in an earlier collective and others do not, only the others are named: those ranks wait for them. */
static void worker_list_late(const tn_tcp *t, int32_t lateness, char *text, size_t size) {
  int32_t n = 0;
  size_t at = 0;
  bool all = lateness != LATE_ABSENT || worker_all_wait(t, lateness);
  for (int32_t r = 0; r < t->ranks; r++) {
    if (r == t->rank || worker_lateness(t, r) != lateness || (!all && t->peers[r].waits) || ++n > 2) continue;
    if (n > 1) at += (size_t)snprintf(text + at, size - at, " and ");
    at += worker_print_late(t, r, text + at, size - at);
  }
  if (n > 2) snprintf(text + at, size - at, " and %d more", (int)n - 2);
}

static void worker_name_late(worker *w, int32_t lateness) {
  char who[3 * TN_TCP_RANK_TEXT + 128], call[TN_TCP_CALL_TEXT + 32];
  worker_list_late(w->t, lateness, who, sizeof who);
  worker_call_text(w, call);
  if (lateness == LATE_ABSENT)
    tn_tcp_fail(w->t, "%s did not come to %s, within %g s", who, call, w->t->timeout_s);
  else
    tn_tcp_fail(w->t, "%s stopped in %s: no byte in %g s", who, call, w->t->timeout_s);
}

/* Of the ranks that this one waits for, those that surely are late are named first. */
static void worker_check_late(worker *w) {
  int32_t least = LATE_NO, n = 0;
  double now = worker_clock_s(w), limit = w->t->timeout_s;
  for (int32_t r = 0; r < w->t->ranks; r++) {
    int32_t lateness = r == w->t->rank ? LATE_NO : worker_lateness(w->t, r);
    n = lateness < least ? 1 : n + (lateness == least);
    if (lateness < least) least = lateness;
  }
  if (least == LATE_NO || worker_has_failed(w)) return;
  if ((least == LATE_RESULT && n > 1) || worker_all_wait(w->t, least)) limit += WORKER_GRACE_S;
  double waited = now - (least == LATE_ABSENT ? w->begun_s : w->moved_s);
  if (waited >= limit / 2) worker_ask_late(w, least);
  if (waited >= limit) worker_name_late(w, least);
}

/* ---- collectives ---- */

static bool worker_stops(const worker *w) {
  pthread_mutex_lock(&w->t->lock);
  bool stops = w->t->stop;
  pthread_mutex_unlock(&w->t->lock);
  return stops;
}

static void worker_check_stop(worker *w) {
  if (worker_stops(w))
    tn_tcp_fail(w->t, "rank %d closes its communicator with pending work", (int)w->t->rank);
}

static bool worker_send_all(worker *w) {
  bool moved = false;
  for (int32_t r = 0; r < w->t->ranks; r++)
    if (r != w->t->rank && !worker_has_failed(w)) moved |= worker_send(w, r);
  return moved;
}

static void worker_run_call(worker *w, uint64_t number) {
  tn_tcp *t = w->t;
  tn_tcp_exchange_begin(t, number);
  w->begun_s = w->moved_s = worker_clock_s(w);
  memset(w->full, 0, sizeof w->full);
  for (int32_t r = 0; r < t->ranks; r++) t->peers[r].asked = t->peers[r].told = t->peers[r].waits = false;
  w->runs = true;
  while (!worker_has_failed(w)) {
    bool moved = worker_send_all(w);
    moved |= tn_tcp_exchange_advance(t);
    if (moved) continue;
    if (tn_tcp_exchange_done(t)) break;
    worker_wait(w, true);
    worker_check_late(w);
    worker_check_stop(w);
  }
  w->runs = false;
}

/* The number of the next collective, from 1; 0: none waits. */
static uint64_t worker_take(tn_tcp *t) {
  pthread_mutex_lock(&t->lock);
  uint64_t number = t->ended < t->pushed ? t->ended + 1 : 0;
  if (number > 0) t->call = t->queue[(number - 1) % TN_TCP_QUEUE];
  pthread_mutex_unlock(&t->lock);
  return number;
}

static void worker_end(tn_tcp *t, uint64_t number) {
  pthread_mutex_lock(&t->lock);
  t->ended = number > 0 ? number : t->pushed;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
}

/* Collectives that wait, and later ones, end as failed. */
static void worker_give_up(worker *w) {
  if (!w->told) worker_tell_all(w, TN_TCP_FAILED);
  w->told = true;
  worker_end(w->t, 0);
}

void *tn_tcp_work(void *arg) {
  worker w = {.t = arg, .seen_s = tn_monotonic_s()};
  while (!worker_stops(&w)) {
    uint64_t number = worker_has_failed(&w) ? 0 : worker_take(w.t);
    if (number > 0) worker_run_call(&w, number);
    if (worker_has_failed(&w))
      worker_give_up(&w);
    else if (number > 0)
      worker_end(w.t, number);
    if (number == 0) worker_wait(&w, false);
  }
  if (!worker_has_failed(&w)) worker_tell_all(&w, TN_TCP_LEAVES);
  return NULL;
}
