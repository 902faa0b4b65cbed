/* core/distributed/join/join_listen.c: process 0 takes the others. A connection has a few seconds for
 * its greeting and the proof that it knows the job's token; without them it is closed. At most GUESTS
 * connections may be undecided at a time, so that strangers take neither memory nor descriptors. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/file/file.h"
#include "core/base/system/system.h"
#include "core/base/text/text.h"
#include "core/distributed/join/join.h"
#include "core/distributed/wire/socket.h"

enum { GUESTS = 128, MOST_ACCEPTED = 64 /* in one look */ };
static const double HELLO_S = 5;   /* from the connection to the whole hello */
static const double ANSWER_S = 10; /* for an answer to one process */
static const double LOOK_S = 0.5;  /* between two looks for processes that have ended */
static const double RETURN_S = 15; /* for a process whose connection has ended to come again */
static const double MOST_S = 2;    /* for one look, unless this process was stopped */

typedef struct guest {
  int socket;
  size_t got;
  double since_s;
  bool answered; /* it has greeted, and was answered: its hello follows */
  unsigned char key[TN_KEY_BYTES];
  unsigned char bytes[TN_HELLO_BYTES + TN_PROOF_BYTES]; /* the greeting, or the hello and its proof */
} guest;

typedef struct listener {
  tn_env *env;
  const tn_join_request *request;
  tn_joined *joined;
  tn_hello own;
  int socket;
  int32_t missing; /* processes that have not come */
  int32_t lost;    /* the process whose connection has ended first; -1: none */
  double lost_s, looked_s;
  int32_t silent;  /* a process that has come and is not heard of; -1: none */
  double *heard_s; /* of each process */
  double said_s;   /* the last signs of life to all */
  int error;       /* of accept */
  char
      stranger[160]; /* the last connection that may have been a process of this job: why it was closed; "" */
  guest *guests;
  int32_t n_guests;
} listener;

/* ---- one guest ---- */

/* The others keep their order: of two connections of a process, the later one is decided last. */
static void guest_leave(listener *l, int32_t i, bool keep_socket) {
  if (!keep_socket) tn_socket_close(l->guests[i].socket);
  l->n_guests--;
  memmove(&l->guests[i], &l->guests[i + 1], (size_t)(l->n_guests - i) * sizeof *l->guests);
}

static void guest_send(int socket, tn_seal *out, uint32_t kind, const char *text) {
  const tn_frame_head head = {.kind = kind, .bytes = (uint32_t)strlen(text)};
  tn_sealed_send(socket, out, &head, text, tn_clock_s() + ANSWER_S);
}

/* Another user of this host is not answered, so that it learns nothing by which it could guess the token. */
static bool guest_is_foreign(listener *l, const guest *g) {
  uint32_t user;
  if (!tn_socket_peer_user(g->socket, false, &user) || user == geteuid()) return false;
  snprintf(l->stranger, sizeof l->stranger,
           "; a process of user %lu came, expected the user of process 0, %lu", (unsigned long)user,
           (unsigned long)geteuid());
  return true;
}

/* Another version of the protocol: the caller learns which one this is. */
static void guest_note_protocol(listener *l, const guest *g, uint32_t protocol) {
  char address[TN_ADDRESS_BYTES];
  tn_socket_peer_address(g->socket, address, sizeof address);
  snprintf(l->stranger, sizeof l->stranger,
           "; a process at %s came with version %lu of the protocol, expected %d: install the same Tenon",
           address, (unsigned long)protocol, TN_PROTOCOL);
}

/* A new connection has room for the answer. False: the guest leaves. */
static bool guest_answer(listener *l, guest *g) {
  tn_greeting theirs, own = {.protocol = TN_PROTOCOL};
  unsigned char answer[TN_ANSWER_BYTES] = {0};
  if (!tn_greeting_read(g->bytes, &theirs) || guest_is_foreign(l, g)) return false;
  bool same = theirs.protocol == TN_PROTOCOL;
  if (!same) guest_note_protocol(l, g, theirs.protocol);
  if (tn_proof_draw(l->env, own.nonce) != TN_OK) return false;
  tn_greeting_write(&own, answer);
  tn_proof_key(l->request->place->token, theirs.nonce, own.nonce, g->key);
  if (same) tn_proof_make(g->key, TN_JOIN_LISTENER, NULL, 0, answer + TN_GREETING_BYTES);
  g->answered = true;
  g->got = 0;
  return tn_socket_send(g->socket, answer, sizeof answer, tn_clock_s()) && same;
}

/* The same process again: it has given up its first connection because the answer came late. */
static bool guest_returns(const listener *l, const tn_hello *h) {
  const tn_member *member = &l->joined->members[h->process];
  return h->process > 0 && l->joined->sockets[h->process] >= 0 && member->pid == h->pid &&
         strcmp(member->host, h->host) == 0;
}

static void listener_forget(listener *l, int32_t process) {
  tn_socket_close(l->joined->sockets[process]);
  l->joined->sockets[process] = -1;
  l->missing++;
}

/* The reason against a process of this job, or "". */
static void guest_judge(const listener *l, const tn_hello *h, char *reason, size_t size) {
  reason[0] = '\0';
  if (strcmp(h->version, l->own.version) != 0)
    snprintf(reason, size, "it has Tenon %s, process 0 on host %s has %s; install the same", h->version,
             l->own.host, l->own.version);
  else if (h->processes != l->own.processes)
    snprintf(reason, size, "it is one of %d processes, for process 0 on host %s there are %d",
             (int)h->processes, l->own.host, (int)l->own.processes);
  else if (h->process == 0 || l->joined->sockets[h->process] >= 0)
    snprintf(reason, size, "there is a process %d already, on host %s (process id %lld)", (int)h->process,
             l->joined->members[h->process].host, (long long)l->joined->members[h->process].pid);
}

static void guest_take(listener *l, int32_t i, const tn_hello *h) {
  tn_member *member = &l->joined->members[h->process];
  tn_seals *seals = &l->joined->seals[h->process];
  int socket = l->guests[i].socket;
  *member = (tn_member){.ranks = h->ranks, .pid = h->pid};
  snprintf(member->host, sizeof member->host, "%s", h->host);
  tn_socket_peer_address(socket, member->address, sizeof member->address);
  *seals = tn_seals_new(l->guests[i].key, true);
  guest_send(socket, &seals->out, TN_FRAME_BEAT, "");
  l->joined->sockets[h->process] = socket;
  l->heard_s[h->process] = tn_clock_s();
  l->missing--;
  if (l->lost == h->process) l->lost = -1;
  guest_leave(l, i, true);
}

static void guest_decide(listener *l, int32_t i) {
  const guest *g = &l->guests[i];
  tn_hello hello;
  char reason[512];
  if (!tn_proof_check(g->key, TN_JOIN_CALLER, g->bytes, TN_HELLO_BYTES, g->bytes + TN_HELLO_BYTES) ||
      !tn_hello_read(g->bytes, &hello)) {
    guest_leave(l, i, false);
    return;
  }
  if (hello.processes == l->own.processes && guest_returns(l, &hello)) listener_forget(l, hello.process);
  guest_judge(l, &hello, reason, sizeof reason);
  if (reason[0] == '\0') {
    guest_take(l, i, &hello);
    return;
  }
  tn_seals seals = tn_seals_new(g->key, true);
  guest_send(g->socket, &seals.out, TN_FRAME_REFUSED, reason);
  guest_leave(l, i, false);
}

static void guest_read(listener *l, int32_t i) {
  guest *g = &l->guests[i];
  size_t whole = g->answered ? sizeof g->bytes : TN_GREETING_BYTES;
  ssize_t n = recv(g->socket, g->bytes + g->got, whole - g->got, 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    guest_leave(l, i, false);
    return;
  }
  if (n > 0) g->got += (size_t)n;
  if (g->got < whole) return;
  if (g->answered)
    guest_decide(l, i);
  else if (!guest_answer(l, g))
    guest_leave(l, i, false);
}

/* ---- listening ---- */

/* A process that is sent away tries again. */
static void listener_send_oldest_away(listener *l) {
  int32_t oldest = 0;
  for (int32_t i = 1; i < l->n_guests; i++)
    if (l->guests[i].since_s < l->guests[oldest].since_s) oldest = i;
  if (l->n_guests > 0) guest_leave(l, oldest, false);
}

/* False: no other connection waits, or there is no room for it. Those that came in the same look are not sent
 * away for it: they have not been read yet. */
static bool listener_accept(listener *l, bool is_first) {
  int socket = tn_descriptor_move_up(accept4(l->socket, NULL, NULL, SOCK_CLOEXEC));
  bool full = socket < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS);
  if (full && l->n_guests == 0) l->error = errno;
  if (full && is_first) listener_send_oldest_away(l);
  if (socket < 0) return false;
  tn_socket_prepare(socket);
  if (l->n_guests == GUESTS) listener_send_oldest_away(l);
  guest *g = &l->guests[l->n_guests++];
  *g = (guest){.socket = socket, .since_s = tn_clock_s()};
  return true;
}

static void listener_look(listener *l) {
  struct pollfd polls[GUESTS + 1];
  int32_t n = l->n_guests;
  for (int32_t i = 0; i < n; i++) polls[i] = (struct pollfd){.fd = l->guests[i].socket, .events = POLLIN};
  polls[n] = (struct pollfd){.fd = l->socket, .events = POLLIN};
  poll(polls, (nfds_t)n + 1, 100);
  double now = tn_clock_s();
  for (int32_t i = 0, at = 0; i < n; i++) { /* `at`: its place now, since guests leave */
    int32_t before = l->n_guests;
    if (polls[i].revents != 0)
      guest_read(l, at);
    else if (now - l->guests[at].since_s > HELLO_S)
      guest_leave(l, at, false);
    at += l->n_guests == before;
  }
  for (int i = 0; i < MOST_ACCEPTED && polls[n].revents != 0 && listener_accept(l, i == 0); i++) continue;
}

static tn_status listener_open(listener *l) {
  const tn_process_place *place = l->request->place;
  bool this_host = place->locals == place->processes;
  for (int32_t i = 0; i < TN_JOIN_PORTS && l->socket < 0; i++)
    l->socket = tn_socket_listen(place->port + i, this_host);
  if (l->socket >= 0) return TN_OK;
  return tn_failf(l->env, TN_ECOMM, "cannot listen for the other %d processes on any port from %d to %d: %s",
                  (int)place->processes - 1, (int)place->port, (int)place->port + TN_JOIN_PORTS - 1,
                  strerror(errno));
}

/* "1, 2 and 5 more" */
static tn_status listener_fail_missing(listener *l) {
  char text[160];
  size_t n = 0;
  int32_t named = 0;
  for (int32_t i = 1; i < l->joined->n && named < 16; i++)
    if (l->joined->sockets[i] < 0)
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", named++ > 0 ? ", " : "", (int)i);
  if (named < l->missing) snprintf(text + n, sizeof text - n, " and %d more", (int)(l->missing - named));
  return tn_failf(
      l->env, TN_ECOMM,
      "of %d processes, %s did not come to process 0 on host %s within %g s ([distributed] timeout); "
      "see what they said, and whether they reach this host%s",
      (int)l->joined->n, text, l->own.host, l->request->timeout_s, l->stranger);
}

static tn_status listener_fail_lost(const listener *l, int32_t process) {
  const tn_member *m = &l->joined->members[process];
  return tn_failf(l->env, TN_ECOMM,
                  "process %d on host %s (process id %lld) ended while the others came; see what it said",
                  (int)process, m->host, (long long)m->pid);
}

static tn_status listener_fail_silent(const listener *l, int32_t process) {
  const tn_member *m = &l->joined->members[process];
  return tn_failf(l->env, TN_ECOMM,
                  "process %d on host %s (process id %lld) has not been heard of for %g s while the others "
                  "came: it is stopped, or its host or network is down",
                  (int)process, m->host, (long long)m->pid, tn_join_silence_s(l->request));
}

/* Takes signs of life. Any other frame, or a part of one, is left to the link, and so is one with a wrong
 * tag. */
static void listener_hear(listener *l, int32_t process, double now) {
  unsigned char bytes[TN_SEALED_HEAD];
  int socket = l->joined->sockets[process];
  tn_frame_head head;
  while (recv(socket, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof bytes) {
    tn_seal next = l->joined->seals[process].in;
    if (!tn_sealed_head_read(&next, bytes, &head)) return;
    l->heard_s[process] = now;
    if (head.kind != TN_FRAME_BEAT || head.bytes > 0) return;
    if (recv(socket, bytes, sizeof bytes, MSG_DONTWAIT) != (ssize_t)sizeof bytes) return;
    l->joined->seals[process].in = next;
  }
}

static void listener_beat(listener *l, double now) {
  const tn_frame_head beat = {.kind = TN_FRAME_BEAT};
  if (now - l->said_s < tn_join_beat_s(l->request)) return;
  l->said_s = now;
  for (int32_t i = 1; i < l->joined->n; i++)
    if (l->joined->sockets[i] >= 0)
      tn_sealed_send(l->joined->sockets[i], &l->joined->seals[i].out, &beat, NULL, now);
}

/* Looks for processes that have come, and have ended or were stopped since. */
static void listener_look_for_lost(listener *l, double now) {
  double silence_s = tn_join_silence_s(l->request);
  listener_beat(l, now);
  if (now - l->looked_s < LOOK_S) return;
  l->looked_s = now;
  for (int32_t i = 1; i < l->joined->n; i++) {
    if (l->joined->sockets[i] < 0) continue;
    listener_hear(l, i, now);
    if (now - l->heard_s[i] >= silence_s && l->silent < 0) l->silent = i;
    if (!tn_socket_has_ended(l->joined->sockets[i])) continue;
    listener_forget(l, i);
    if (l->lost >= 0) continue;
    l->lost = i;
    l->lost_s = now;
  }
}

static tn_status listener_check(listener *l, double deadline_s) {
  double now = tn_clock_s();
  if (tn_join_stopped(l->request)) return tn_failf(l->env, TN_ESTOPPED, "stopped");
  listener_look_for_lost(l, now);
  if (l->lost >= 0 && (now - l->lost_s > RETURN_S || now > deadline_s)) return listener_fail_lost(l, l->lost);
  if (l->error != 0)
    return tn_failf(l->env, TN_ECOMM, "cannot take another of %d processes: %s; see `ulimit -n`",
                    (int)l->joined->n, strerror(l->error));
  if (l->missing > 0 && now > deadline_s) return listener_fail_missing(l);
  return l->silent >= 0 ? listener_fail_silent(l, l->silent) : TN_OK;
}

static tn_status listener_await(listener *l) {
  double seen = tn_clock_s(), deadline = seen + l->request->timeout_s;
  while (l->missing > 0) {
    listener_look(l);
    double pause = tn_join_pause(&seen, MOST_S);
    if (l->missing > 0 && pause >= l->request->timeout_s)
      return tn_join_fail_paused(l->env, l->request, pause);
    deadline += pause;
    for (int32_t i = 1; i < l->joined->n && pause > 0; i++) l->heard_s[i] = tn_clock_s();
    if (l->missing == 0) l->looked_s = 0; /* all must be there at the end */
    TN_TRY(listener_check(l, deadline));
  }
  return TN_OK;
}

/* The processes that have come learn why there is no run. */
static void listener_tell(const listener *l, tn_status status) {
  unsigned char body[TN_FAILURE_BYTES];
  tn_wire_failure failure = {.rank = 0, .status = status};
  tn_failure_set_text(&failure, tn_error_text(l->env));
  const tn_frame_head head = {.kind = TN_FRAME_FAILURE, .bytes = tn_failure_write(&failure, body)};
  for (int32_t i = 1; i < l->joined->n; i++)
    if (l->joined->sockets[i] >= 0)
      tn_sealed_send(l->joined->sockets[i], &l->joined->seals[i].out, &head, body, tn_clock_s());
}

/* ---- the members ---- */

/* Ranks are numbered in the order of processes. A process of this host that came by the loopback device has
 * the address by which the other hosts reach this one. */
static tn_status listener_number(listener *l) {
  tn_joined *j = l->joined;
  char own[TN_ADDRESS_BYTES] = "127.0.0.1";
  int64_t ranks = 0;
  for (int32_t i = 1; i < j->n && tn_address_is_loopback(own); i++)
    tn_socket_own_address(j->sockets[i], own, sizeof own);
  snprintf(j->members[0].address, sizeof j->members[0].address, "%s", own);
  for (int32_t i = 0; i < j->n; i++) {
    j->members[i].first_rank = (int32_t)ranks;
    ranks += j->members[i].ranks;
    if (tn_address_is_loopback(j->members[i].address)) memcpy(j->members[i].address, own, sizeof own);
  }
  if (ranks <= INT32_MAX) return TN_OK;
  return tn_failf(l->env, TN_EINVAL, "the processes have %lld ranks", (long long)ranks);
}

/* The bytes of all members, once, and tags for each process. */
static bool listener_send_members(const listener *l, const unsigned char *members, int32_t to) {
  tn_joined *j = l->joined;
  double until_s = tn_clock_s() + ANSWER_S;
  bool sent = true;
  for (int32_t m = 0; m < j->n && sent; m++) {
    const tn_frame_head head = {.kind = TN_FRAME_WELCOME, .number = (uint64_t)m, .bytes = TN_MEMBER_BYTES};
    sent = tn_sealed_send(j->sockets[to], &j->seals[to].out, &head, members + (size_t)m * TN_MEMBER_BYTES,
                          until_s);
  }
  return sent;
}

static tn_status listener_welcome(listener *l) {
  tn_joined *j = l->joined;
  unsigned char *members = tn_alloc(l->env, tn_size_mul((size_t)j->n, TN_MEMBER_BYTES));
  tn_status status = members != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t m = 0; m < j->n && status == TN_OK; m++)
    tn_member_write(&j->members[m], members + (size_t)m * TN_MEMBER_BYTES);
  for (int32_t i = 1; i < j->n && status == TN_OK; i++)
    if (!listener_send_members(l, members, i)) status = listener_fail_lost(l, i);
  tn_release(l->env, members);
  return status;
}

tn_status tn_join_listen(tn_env *env, const tn_join_request *request, tn_joined *joined) {
  listener l = {.env = env,
                .request = request,
                .joined = joined,
                .socket = -1,
                .missing = joined->n - 1,
                .lost = -1,
                .silent = -1};
  tn_join_hello(request, &l.own);
  joined->members[0] = (tn_member){.ranks = request->ranks, .pid = l.own.pid};
  memcpy(joined->members[0].host, l.own.host, sizeof l.own.host);
  l.guests = tn_alloc(env, sizeof *l.guests * GUESTS);
  l.heard_s = tn_alloc(env, tn_size_mul((size_t)joined->n, sizeof *l.heard_s));
  unsigned char nonce[TN_NONCE_BYTES]; /* without random bytes, no process could be answered */
  tn_status status = l.guests != NULL && l.heard_s != NULL ? tn_proof_draw(env, nonce) : TN_ENOMEM;
  if (status == TN_OK) status = listener_open(&l);
  if (status == TN_OK) status = listener_await(&l);
  if (status == TN_OK) status = listener_number(&l);
  if (status == TN_OK) status = listener_welcome(&l);
  if (status != TN_OK) listener_tell(&l, status);
  while (l.n_guests > 0) guest_leave(&l, 0, false);
  if (l.socket >= 0) tn_socket_close(l.socket);
  tn_release(env, l.guests);
  tn_release(env, l.heard_s);
  return status;
}
