/* core/distributed/link/exchanges.c: gatherings and broadcasts over a link. Process 0 collects the parts
 * of all processes and sends the whole back. Data travel in frames of at most TN_FRAME_MOST bytes, and wait
 * at the receiver until it comes to the same exchange. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/system/system.h"
#include "core/distributed/link/link_state.h"

/* Frames that may be under way to a process at a time. */
enum { MOST_GOING = 8 };

/* ---- waits; the lock must be held ---- */

static tn_status link_fail_left(tn_link *l, int32_t process) {
  tn_wire_failure failure = {.rank = l->joined.members[process].first_rank, .status = TN_ECOMM};
  snprintf(failure.text, sizeof failure.text,
           "its process has left the run, but process %d waits for it ('%s')", (int)l->process, l->what);
  tn_link_note(l, &failure, false);
  return TN_ECOMM;
}

static tn_status link_fail_stopped(tn_link *l) {
  tn_wire_failure failure = {.rank = tn_link_first_rank(l), .status = tn_check_stop(&l->env)};
  tn_failure_set_text(&failure, tn_error_text(&l->env));
  tn_link_note(l, &failure, false);
  return TN_ECOMM;
}

/* The thread of the link signals `changed` after each of its looks, of which there are four a second at
 * least.
 */
static tn_status link_await_change(tn_link *l, int32_t process) {
  if (l->failed) return TN_ECOMM;
  if (!l->steps && tn_stop_asked(&l->env)) return link_fail_stopped(l);
  if (l->peers[process].left) return link_fail_left(l, process);
  if (l->awaited != process) l->since_s = tn_clock_s();
  l->awaited = process;
  pthread_cond_wait(&l->changed, &l->lock);
  return l->failed ? TN_ECOMM : TN_OK;
}

/* A frame of an exchange was moved: the next wait begins anew. */
static void link_progress(tn_link *l) {
  l->progress++;
  l->awaited = -1;
}

static tn_status link_begin(tn_link *l, const char *what) {
  l->number++;
  l->what = what;
  return l->failed ? TN_ECOMM : TN_OK;
}

static tn_status link_end(tn_link *l, tn_status status) {
  l->awaited = -1;
  return status;
}

int32_t tn_link_awaited(tn_link *l, double *since_s, const char **what) {
  pthread_mutex_lock(&l->lock);
  int32_t process = l->failed ? -1 : l->awaited;
  *since_s = l->since_s;
  *what = l->what;
  pthread_mutex_unlock(&l->lock);
  return process;
}

/* ---- sending ---- */

static tn_status link_no_memory(tn_link *l) {
  tn_wire_failure failure = {.rank = tn_link_first_rank(l), .status = TN_ENOMEM, .text = "out of memory"};
  tn_link_note(l, &failure, false);
  return TN_ECOMM;
}

/* The first process that does not take the frames sent to it; -1: all do. */
static int32_t link_slow_process(const tn_link *l) {
  for (int32_t i = 0; i < l->n_peers; i++)
    if (l->peers[i].socket >= 0 && l->peers[i].n_going >= MOST_GOING) return i;
  return -1;
}

/* Sends data to all peers. Data of no bytes are one frame without a body. */
static tn_status link_send(tn_link *l, uint32_t kind, const void *data, size_t bytes) {
  size_t at = 0;
  do {
    uint32_t n = (uint32_t)(bytes - at < TN_FRAME_MOST ? bytes - at : TN_FRAME_MOST);
    for (int32_t slow; (slow = link_slow_process(l)) >= 0;) TN_TRY(link_await_change(l, slow));
    tn_frame *frame = tn_frame_new(&l->env, kind, l->number, n);
    if (frame == NULL) return link_no_memory(l);
    if (n > 0) memcpy(tn_frame_body(frame), (const char *)data + at, n);
    tn_link_queue_all(l, frame);
    tn_frame_release(&l->env, frame);
    if (l->out_of_memory) return link_no_memory(l);
    link_progress(l);
    at += n;
  } while (at < bytes);
  return TN_OK;
}

/* ---- receiving ---- */

static tn_status link_fail_order(tn_link *l, int32_t process, const tn_frame_head *head, size_t wanted) {
  const tn_member *m = &l->joined.members[process];
  tn_wire_failure failure = {.rank = m->first_rank, .status = TN_ECOMM};
  snprintf(failure.text, sizeof failure.text,
           "process %d on host %s is at exchange %llu with %u bytes, process %d at exchange %llu ('%s') with "
           "%zu; all processes must have the same configuration",
           (int)process, m->host, (unsigned long long)head->number, head->bytes, (int)l->process,
           (unsigned long long)l->number, l->what, wanted);
  tn_link_note(l, &failure, false);
  return TN_ECOMM;
}

/* The next frame of an exchange. A peer that was full may be read again. */
static tn_status link_take_frame(tn_link *l, int32_t process, tn_frame **frame) {
  tn_peer *peer = &l->peers[process];
  while (peer->came == NULL) TN_TRY(link_await_change(l, process));
  bool full = tn_peer_is_full(peer);
  *frame = tn_peer_take(peer);
  if (full && !tn_peer_is_full(peer)) tn_link_wake(l);
  return TN_OK;
}

static tn_status link_receive(tn_link *l, int32_t process, void *data, size_t bytes) {
  size_t at = 0;
  do {
    size_t wanted = bytes - at < TN_FRAME_MOST ? bytes - at : TN_FRAME_MOST;
    tn_frame *frame;
    TN_TRY(link_take_frame(l, process, &frame));
    tn_frame_head head = frame->head;
    bool fits = head.number == l->number && head.bytes == wanted;
    if (fits && wanted > 0) memcpy((char *)data + at, tn_frame_body(frame), wanted);
    tn_frame_release(&l->env, frame);
    if (!fits) return link_fail_order(l, process, &head, wanted);
    link_progress(l);
    at += wanted;
  } while (at < bytes);
  return TN_OK;
}

/* ---- exchanges ---- */

static tn_status link_collect(tn_link *l, const void *mine, size_t bytes, void *all) {
  const tn_member *m = l->joined.members;
  if (bytes > 0) memcpy(all, mine, bytes * (size_t)m[0].ranks);
  for (int32_t i = 1; i < l->joined.n; i++)
    TN_TRY(link_receive(l, i, (char *)all + (size_t)m[i].first_rank * bytes, (size_t)m[i].ranks * bytes));
  return TN_OK;
}

/* Process 0 gets the parts of all processes, and they the whole if `back`. */
static tn_status link_exchange_parts(tn_link *l, const void *mine, size_t bytes, void *all, bool back) {
  size_t own = (size_t)l->joined.members[l->process].ranks * bytes, whole = (size_t)tn_link_ranks(l) * bytes;
  if (l->process != 0) {
    TN_TRY(link_send(l, TN_FRAME_PART, mine, own));
    return back ? link_receive(l, 0, all, whole) : TN_OK;
  }
  TN_TRY(link_collect(l, mine, bytes, all));
  return back ? link_send(l, TN_FRAME_RESULT, all, whole) : TN_OK;
}

static tn_status link_gather(tn_link *l, const char *what, const void *mine, size_t bytes, void *all,
                             bool back) {
  pthread_mutex_lock(&l->lock);
  tn_status status = link_begin(l, what);
  if (status == TN_OK) status = link_exchange_parts(l, mine, bytes, all, back);
  status = link_end(l, status);
  pthread_mutex_unlock(&l->lock);
  return status;
}

tn_status tn_link_all_gather(tn_link *l, const char *what, const void *mine, size_t bytes, void *all) {
  return link_gather(l, what, mine, bytes, all, true);
}

tn_status tn_link_gather(tn_link *l, const char *what, const void *mine, size_t bytes, void *all) {
  return link_gather(l, what, mine, bytes, all, false);
}

tn_status tn_link_broadcast(tn_link *l, const char *what, void *data, size_t bytes) {
  pthread_mutex_lock(&l->lock);
  tn_status status = link_begin(l, what);
  if (status == TN_OK)
    status = l->process == 0 ? link_send(l, TN_FRAME_RESULT, data, bytes) : link_receive(l, 0, data, bytes);
  status = link_end(l, status);
  pthread_mutex_unlock(&l->lock);
  return status;
}

/* ---- decisions ---- */

tn_status tn_link_send_decision(tn_link *l, int32_t decision) {
  pthread_mutex_lock(&l->lock);
  tn_frame *frame = l->failed ? NULL : tn_frame_new(&l->env, TN_FRAME_DECISION, 0, 4);
  tn_status status = frame != NULL ? TN_OK : TN_ECOMM;
  for (int i = 0; frame != NULL && i < 4; i++)
    tn_frame_body(frame)[i] = (unsigned char)((uint32_t)decision >> 8 * i);
  if (frame != NULL) tn_link_queue_all(l, frame);
  tn_frame_release(&l->env, frame);
  if ((status != TN_OK || l->out_of_memory) && !l->failed) status = link_no_memory(l);
  pthread_mutex_unlock(&l->lock);
  return status;
}

tn_status tn_link_next_decision(tn_link *l, int32_t *decision) {
  tn_status status = TN_OK;
  pthread_mutex_lock(&l->lock);
  l->what = "the next step";
  while (status == TN_OK && l->decided == l->decisions.n) status = link_await_change(l, 0);
  if (status == TN_OK) *decision = l->decisions.v[l->decided++];
  if (l->decided == l->decisions.n) l->decided = l->decisions.n = 0;
  status = link_end(l, status);
  pthread_mutex_unlock(&l->lock);
  return status;
}

/* ---- failures and stops of this process ---- */

void tn_link_fail(tn_link *l, const tn_wire_failure *failure) {
  pthread_mutex_lock(&l->lock);
  tn_link_note(l, failure, true);
  pthread_mutex_unlock(&l->lock);
}

void tn_link_begin_steps(tn_link *l) {
  pthread_mutex_lock(&l->lock);
  l->steps = true;
  pthread_mutex_unlock(&l->lock);
}

/* Asked again after a lack of memory. */
void tn_link_stop(tn_link *l) {
  pthread_mutex_lock(&l->lock);
  bool tells = l->process != 0 && !l->stop_asked;
  tn_frame *frame = tells ? tn_frame_new(&l->env, TN_FRAME_STOP, 0, 0) : NULL;
  if (frame != NULL) tn_link_queue_all(l, frame);
  if (!l->stop_asked) tn_link_wake(l);
  if (!tells || frame != NULL) l->stop_asked = true;
  tn_frame_release(&l->env, frame);
  pthread_mutex_unlock(&l->lock);
}

/* ---- reports ---- */

void tn_link_report(tn_link *l, const void *bytes, uint32_t n) {
  pthread_mutex_lock(&l->lock);
  tn_frame *frame = n <= TN_FRAME_MOST ? tn_frame_new(&l->env, TN_FRAME_REPORT, 0, n) : NULL;
  if (frame != NULL) {
    if (n > 0) memcpy(tn_frame_body(frame), bytes, n);
    tn_link_queue_all(l, frame);
  }
  tn_frame_release(&l->env, frame);
  pthread_mutex_unlock(&l->lock);
}

/* The thread of the link signals a report. */
static bool link_await_report(tn_link *l, const tn_peer *peer, double until_s) {
  struct timespec until;
  while (peer->report == NULL && peer->socket >= 0 && tn_clock_s() < until_s) {
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&l->changed, &l->lock, &until);
  }
  return peer->report != NULL;
}

bool tn_link_receive_report(tn_link *l, const void *handle, int32_t process, double until_s, char **bytes,
                            uint32_t *n) {
  pthread_mutex_lock(&l->lock);
  tn_peer *peer = &l->peers[process];
  *bytes = NULL;
  if (link_await_report(l, peer, until_s)) {
    *n = peer->report->head.bytes;
    *bytes = tn_alloc(handle, (size_t)*n + 1);
    if (*bytes != NULL) memcpy(*bytes, tn_frame_body(peer->report), *n);
  }
  pthread_mutex_unlock(&l->lock);
  return *bytes != NULL;
}
