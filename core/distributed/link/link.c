/* core/distributed/link/link.c: opening and closing a link, and its thread, which sends, receives, gives
 * signs of life and misses those of others. */
#include "core/distributed/link/link_state.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/wire/socket.h"

/* For the last frames after a failure. */
static const double LAST_WORDS_S = 2;

/* Process 0 sees all processes, so the others that wait for its leave report later by this time, or half the
 * limit. */
static const double GRACE_S = 5;

/* The most that one wait of link_await_quiet counts: a longer one is the time of a process that was stopped.
 */
static const double WAIT_S = 2;

/* Looks for each sign of life. */
enum { LOOK_MS = 1000 / 4 };

/* ---- failures ---- */

/* The failure of a process, as one of its first rank. */
static void link_note_lost(tn_link *l, int32_t process, const char *what) {
  tn_wire_failure failure = {.rank = l->joined.members[process].first_rank, .status = TN_ECOMM};
  snprintf(failure.text, sizeof failure.text, "its process %s", what);
  tn_link_note(l, &failure, false);
}

/* ---- frames that come ---- */

static int32_t link_process_of_peer(const tn_link *l, const tn_peer *peer) {
  return l->process == 0 ? (int32_t)(peer - l->peers) : 0;
}

static void link_take_failure(tn_link *l, const tn_peer *peer, tn_frame *frame) {
  tn_wire_failure failure;
  if (tn_failure_read(tn_frame_body(frame), frame->head.bytes, &failure) && failure.rank < tn_link_ranks(l))
    tn_link_note(l, &failure, false);
  else
    link_note_lost(l, link_process_of_peer(l, peer), "sent a failure that cannot be read");
}

/* Moves those that are not taken to the front. */
static void link_forget_decisions(tn_link *l) {
  l->decisions.n -= l->decided;
  memmove(l->decisions.v, l->decisions.v + l->decided, l->decisions.n * sizeof *l->decisions.v);
  l->decided = 0;
}

static void link_take_decision(tn_link *l, tn_frame *frame) {
  const unsigned char *b = tn_frame_body(frame);
  int32_t decision =
      frame->head.bytes == 4
          ? (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24)
          : 0;
  if (l->decided >= TN_LINK_DECISIONS / 2) link_forget_decisions(l);
  if (l->decisions.n < TN_LINK_DECISIONS && tn_vec_push(&l->env, &l->decisions, decision) == TN_OK) return;
  link_note_lost(l, l->process, "is too many decisions behind process 0");
}

/* Process 0 receives from others while this process waits for it. */
static void link_take_progress(tn_link *l, tn_peer *peer, uint64_t progress) {
  if (l->process == 0 || peer->progress == progress) return;
  peer->progress = progress;
  l->since_s = tn_clock_s();
}

static void link_take(void *context, tn_peer *peer, tn_frame *frame) {
  tn_link *l = context;
  bool hub = l->process == 0;
  uint32_t kind = frame->head.kind;
  if ((kind == TN_FRAME_PART && hub) || (kind == TN_FRAME_RESULT && !hub)) {
    tn_peer_keep(peer, frame);
    return;
  }
  if (kind == TN_FRAME_REPORT) {
    tn_peer_keep_report(&l->env, peer, frame);
    return;
  }
  if (kind == TN_FRAME_FAILURE)
    link_take_failure(l, peer, frame);
  else if (kind == TN_FRAME_DECISION && !hub)
    link_take_decision(l, frame);
  else if (kind == TN_FRAME_STOP && hub)
    l->stop_asked = true;
  else if (kind == TN_FRAME_LEAVE)
    peer->left = true;
  else if (kind == TN_FRAME_ALL_LEFT && !hub)
    l->all_left = true;
  else if (kind == TN_FRAME_BEAT)
    link_take_progress(l, peer, frame->head.number);
  else
    link_note_lost(l, link_process_of_peer(l, peer),
                   "sent a frame of a kind that this process does not expect");
  tn_frame_release(&l->env, frame);
}

/* ---- one look at all peers ---- */

/* Whether the peer may be silent or gone. Process 0 may not until it has heard of all others. */
static bool link_may_go(const tn_link *l, const tn_peer *peer) {
  return l->process == 0 ? peer->left : l->all_left;
}

static void link_end_peer(tn_link *l, tn_peer *peer) {
  bool in_order = link_may_go(l, peer);
  if (!in_order && peer->forged) /* the peer learns it, where it can still be reached */
    link_note_lost(
        l, link_process_of_peer(l, peer),
        "sent bytes that are no frames of its own: on the way they were changed, repeated or put in between");
  tn_socket_close(peer->socket);
  peer->socket = -1; /* what came is still taken */
  if (!in_order && !peer->forged)
    link_note_lost(l, link_process_of_peer(l, peer), "has ended without a word; see its own messages");
}

static void link_serve_peer(tn_link *l, tn_peer *peer, short events) {
  bool open = true;
  if (events & (POLLIN | POLLHUP | POLLERR)) open = tn_peer_receive(&l->env, peer, link_take, l);
  if (open && peer->n_going > 0) open = tn_peer_send(&l->env, peer);
  if (!open) link_end_peer(l, peer);
}

/* A process that was stopped itself has received nothing meanwhile, and does not blame the others. */
static void link_check_silence(tn_link *l, tn_peer *peer, double now, bool was_away) {
  char text[96];
  if (was_away || tn_peer_is_full(peer)) peer->heard_s = now; /* nothing is read from a full one */
  if (link_may_go(l, peer) || now - peer->heard_s < l->silence_s) return;
  snprintf(text, sizeof text,
           "has not been heard of for %.0f s: it is stopped, or its host or network is down", l->silence_s);
  link_note_lost(l, link_process_of_peer(l, peer), text);
}

static void link_beat(tn_link *l, tn_peer *peer, double now) {
  if (now - peer->said_s < l->beat_s || peer->n_going > 0) return;
  tn_frame *frame = tn_frame_new(&l->env, TN_FRAME_BEAT, l->progress, 0);
  if (frame != NULL) tn_peer_queue(&l->env, peer, frame);
  tn_frame_release(&l->env, frame);
}

static int32_t link_fill_polls(tn_link *l) {
  int32_t n = 0;
  for (int32_t i = 0; i < l->n_peers; i++) {
    const tn_peer *p = &l->peers[i];
    if (p->socket < 0) continue;
    short in = tn_peer_is_full(p) ? 0 : POLLIN, out = p->n_going > 0 ? POLLOUT : 0;
    bool idle = in == 0 && out == 0; /* not polled: poll would return for a connection that has ended */
    l->polled[n] = i;
    l->polls[n++] = (struct pollfd){.fd = idle ? -1 : p->socket, .events = (short)(in | out)};
  }
  l->polls[n] = (struct pollfd){.fd = l->wake, .events = POLLIN};
  return n;
}

static void link_serve(tn_link *l, int32_t n, bool was_away) {
  double now = tn_clock_s();
  for (int32_t i = 0; i < n; i++) {
    tn_peer *p = &l->peers[l->polled[i]];
    link_serve_peer(l, p, l->polls[i].revents);
    if (p->socket < 0) continue;
    link_check_silence(l, p, now, was_away);
    link_beat(l, p, now);
  }
  pthread_cond_broadcast(&l->changed);
}

/* ---- the thread ---- */

/* The listener is called without the lock. */
static void link_tell(tn_link *l) {
  tn_link_listener listener = l->listener;
  tn_wire_failure failure = l->failure;
  bool failed = l->failed && !l->told && listener.failed != NULL,
       stopped = l->process == 0 && l->stop_asked && !l->stop_told && listener.stopped != NULL;
  l->told = l->told || failed;
  l->stop_told = l->stop_told || stopped;
  l->telling = failed || stopped;
  pthread_mutex_unlock(&l->lock);
  if (failed) listener.failed(listener.context, &failure);
  if (stopped) listener.stopped(listener.context);
  pthread_mutex_lock(&l->lock);
  l->telling = false;
  pthread_cond_broadcast(&l->changed);
}

static void link_sleep(tn_link *l, int32_t n) {
  uint64_t count;
  pthread_mutex_unlock(&l->lock);
  poll(l->polls, (nfds_t)n + 1, (int)(l->beat_s * LOOK_MS));
  while (read(l->wake, &count, sizeof count) > 0) continue;
  pthread_mutex_lock(&l->lock);
}

static void *link_run(void *context) {
  tn_link *l = context;
  double looked_s = tn_clock_s();
  pthread_mutex_lock(&l->lock);
  while (!l->ending) {
    int32_t n = link_fill_polls(l);
    link_sleep(l, n);
    double now = tn_clock_s();
    link_serve(l, n, now - looked_s > l->silence_s / 2);
    looked_s = now;
    link_tell(l);
  }
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

/* ---- opening ---- */

static void link_free(tn_link *l) {
  for (int32_t i = 0; l->peers != NULL && i < l->n_peers; i++) tn_peer_close(&l->env, &l->peers[i]);
  tn_joined_free(&l->env, &l->joined);
  if (l->wake >= 0) close(l->wake);
  tn_vec_free(&l->env, &l->decisions);
  tn_release(&l->env, l->polls);
  tn_release(&l->env, l->polled);
  tn_release(&l->env, l->peers);
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  tn_error_record record = l->record;
  tn_env env = {l->env.api, &record};
  tn_release(&env, l);
}

static tn_status link_make_peers(tn_link *l) {
  l->n_peers = l->process == 0 ? l->joined.n : 1;
  size_t n = (size_t)l->n_peers + 1;
  l->peers = tn_alloc(&l->env, tn_size_mul(n, sizeof *l->peers));
  for (int32_t i = 0; l->peers != NULL && i < l->n_peers; i++) tn_peer_init(&l->peers[i], -1, NULL);
  l->polls = tn_alloc(&l->env, tn_size_mul(n, sizeof *l->polls));
  l->polled = tn_alloc(&l->env, tn_size_mul(n, sizeof *l->polled));
  if (l->peers == NULL || l->polls == NULL || l->polled == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < l->n_peers; i++) {
    tn_peer_init(&l->peers[i], l->joined.sockets[i], &l->joined.seals[i]);
    l->joined.sockets[i] = -1;
  }
  return TN_OK;
}

static tn_status link_start_thread(tn_link *l) {
  l->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (l->wake < 0) return tn_failf(&l->env, TN_EUNAVAILABLE, "eventfd: %s", strerror(errno));
  int error = tn_thread_start(&l->thread, link_run, l);
  l->started = error == 0;
  return error == 0 ? TN_OK
                    : tn_failf(&l->env, TN_EUNAVAILABLE, "cannot start a thread: %s", strerror(error));
}

tn_status tn_link_open(tn_env *env, const tn_join_request *request, tn_link **out) {
  tn_link *l = tn_alloc(env, sizeof *l);
  *out = NULL;
  if (l == NULL) return TN_ENOMEM;
  tn_error_record_init(&l->env, &l->record, env);
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->changed, NULL);
  l->wake = -1;
  l->awaited = -1;
  l->process = request->place->process;
  l->timeout_s = request->timeout_s;
  l->silence_s = tn_join_silence_s(request);
  l->beat_s = tn_join_beat_s(request);
  tn_status status = tn_join(&l->env, request, &l->joined);
  if (status == TN_OK) status = link_make_peers(l);
  if (status == TN_OK) status = link_start_thread(l);
  if (status == TN_OK) {
    *out = l;
    return TN_OK;
  }
  tn_error_move(env, &l->env);
  link_free(l);
  return status;
}

/* ---- closing ---- */

/* The first process that has not left; -1: all have. The lock must be held. */
static int32_t link_stayer(const tn_link *l) {
  for (int32_t i = 0; i < l->n_peers; i++)
    if (l->peers[i].socket >= 0 && !link_may_go(l, &l->peers[i]))
      return link_process_of_peer(l, &l->peers[i]);
  return -1;
}

static bool link_has_sent(const tn_link *l) {
  for (int32_t i = 0; i < l->n_peers; i++)
    if (!tn_peer_is_sent(&l->peers[i])) return false;
  return true;
}

/* A process may hang behind its last step, as in an observer or a file system that does not answer. */
static void link_check_stayer(tn_link *l, int32_t process, double waited_s) {
  double grace = l->timeout_s / 2 < GRACE_S ? l->timeout_s / 2 : GRACE_S;
  char text[128];
  if (waited_s < (l->process == 0 ? l->timeout_s : l->timeout_s + grace)) return;
  snprintf(text, sizeof text,
           "does not leave the run within %g s ([distributed] timeout): it hangs behind its "
           "last step",
           l->timeout_s);
  link_note_lost(l, process, text);
}

/* Seconds that count; the lock is given back meanwhile. */
static double link_await_second(tn_link *l) {
  struct timespec until;
  double from = tn_clock_s();
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  pthread_cond_timedwait(&l->changed, &l->lock, &until);
  double waited = tn_clock_s() - from;
  return waited < WAIT_S ? waited : WAIT_S;
}

/* Returns when all frames have arrived and, in order, all other processes have left, or are late. The last
 * frames may not arrive at all: the host of a process that has left may be down. */
static void link_await_quiet(tn_link *l, bool in_order) {
  double waited_s = 0, ended_s = 0;
  for (;;) {
    bool ends = l->failed || !in_order;
    int32_t stayer = ends ? -1 : link_stayer(l);
    if (stayer < 0 && (link_has_sent(l) || ended_s > (ends ? LAST_WORDS_S : l->silence_s))) return;
    double seconds = link_await_second(l);
    waited_s += seconds;
    ended_s = stayer < 0 ? ended_s + seconds : 0;
    if (stayer >= 0 && !l->failed && link_stayer(l) == stayer) link_check_stayer(l, stayer, waited_s);
  }
}

static void link_say(tn_link *l, uint32_t kind, bool *said) {
  tn_frame *frame = *said ? NULL : tn_frame_new(&l->env, kind, 0, 0);
  *said = true;
  if (frame != NULL) tn_link_queue_all(l, frame);
  tn_frame_release(&l->env, frame);
}

/* No process ends before all have come here: the end of one may make a launcher end the others, as mpirun
 * does, before process 0 has named one that is stopped. The lock must be held. */
static void link_part(tn_link *l) {
  link_say(l, TN_FRAME_LEAVE, &l->leaving);
  link_await_quiet(l, true);
  if (l->process != 0 || l->failed) return;
  link_say(l, TN_FRAME_ALL_LEFT, &l->all_left);
  link_await_quiet(l, true);
}

tn_status tn_link_leave(tn_link *l) {
  pthread_mutex_lock(&l->lock);
  link_part(l);
  bool failed = l->failed;
  pthread_mutex_unlock(&l->lock);
  return failed ? TN_ECOMM : TN_OK;
}

void tn_link_close(tn_link *l, bool in_order) {
  if (l == NULL) return;
  pthread_mutex_lock(&l->lock);
  if (in_order) link_part(l);
  link_await_quiet(l, in_order);
  l->ending = true;
  tn_link_wake(l);
  pthread_mutex_unlock(&l->lock);
  if (l->started) pthread_join(l->thread, NULL);
  link_free(l);
}

void tn_link_listen(tn_link *l, const tn_link_listener *listener) {
  pthread_mutex_lock(&l->lock);
  while (l->telling) pthread_cond_wait(&l->changed, &l->lock);
  l->listener = listener != NULL ? *listener : (tn_link_listener){.context = NULL};
  l->told = l->stop_told = false;
  tn_link_wake(l);
  pthread_mutex_unlock(&l->lock);
}
