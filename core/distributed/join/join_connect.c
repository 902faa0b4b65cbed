/* core/distributed/join/join_connect.c: a process comes to process 0. A port may belong to another
 * program, which answers nothing, closes, or has no proof that it belongs to the job, so all ports are tried
 * beside each other, again and again until the time is over, since process 0 may start later. Nothing of the
 * job is sent before the proof. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/join/join.h"
#include "core/distributed/join/lookup.h"
#include "core/distributed/wire/socket.h"

static const double TRY_S = 5; /* for a connection, for the answer to a greeting, and for that to the hello */
static const double LOOK_S = 0.1; /* between two looks for a request to stop */
static const double MOST_S = 16;  /* for one try, unless this process was stopped */
static const double NAME_S = 1;   /* between two look-ups of the host's name */
/* Process 0 has the list of missing processes, so those that it has taken give up later by this time, or half
 * the limit. */
static const double GRACE_S = 5;

/* Between two rounds over the ports, answers are waited for. */
enum { LEAST_PAUSE_MS = 5, MOST_PAUSE_MS = 100 };
/* The body of a frame, and its tag. */
enum { CALLER_BODY = TN_JOIN_BODY + TN_TAG_BYTES };

static const char UNANSWERED[] = "one of them listens and does not answer: it is stopped, or another program";

/* A connection to a port that has got the greeting. */
typedef struct caller_try {
  int socket; /* -1: none */
  double since_s;
  size_t got;
  unsigned char nonce[TN_NONCE_BYTES], answer[TN_ANSWER_BYTES];
} caller_try;

typedef struct caller {
  tn_env *env;
  const tn_join_request *request;
  tn_joined *joined;
  double deadline_s, seen_s, paused_s; /* tn_join_pause; the last pause, 0: none in the last round */
  const char *reason;   /* against the last port, or that of a listener that is not process 0 */
  bool reached;         /* the reason is that of a listener */
  tn_socket_host *host; /* the addresses of process 0; NULL: they are not known */
  double named_s;       /* the last look-up */
  caller_try tries[TN_JOIN_PORTS];
  int socket;
  tn_seals seals;
  bool taken; /* by process 0: signs of life go both ways */
  double heard_s, said_s;
} caller;

static void caller_note_pause(caller *c) {
  double pause = tn_join_pause(&c->seen_s, MOST_S);
  if (pause > 0) c->paused_s = pause;
}

static void caller_beat(caller *c) {
  const tn_frame_head beat = {.kind = TN_FRAME_BEAT};
  double now = tn_clock_s();
  if (!c->taken || now - c->said_s < tn_join_beat_s(c->request)) return;
  tn_sealed_send(c->socket, &c->seals.out, &beat, NULL, now);
  c->said_s = now;
}

/* False: nothing has come in time, or this process was asked to stop. */
static bool caller_await(caller *c, double deadline_s) {
  bool ready = false;
  while (!ready && tn_clock_s() < deadline_s && !tn_join_stopped(c->request)) {
    ready = tn_socket_await(c->socket, tn_clock_s() + LOOK_S);
    caller_note_pause(c);
    caller_beat(c);
  }
  return ready;
}

/* All bytes, or false. A part of a frame may be all that comes. */
static bool caller_take(caller *c, void *to, size_t bytes, double deadline_s) {
  for (size_t got = 0; got < bytes;) {
    if (!caller_await(c, deadline_s)) return false;
    ssize_t n = recv(c->socket, (char *)to + got, bytes - got, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (n > 0) got += (size_t)n;
  }
  return true;
}

/* A whole frame, or false with a head of no kind. */
static bool caller_receive(caller *c, tn_frame_head *head, unsigned char body[CALLER_BODY],
                           double deadline_s) {
  unsigned char bytes[TN_SEALED_HEAD];
  bool whole = caller_take(c, bytes, sizeof bytes, deadline_s) &&
               tn_sealed_head_read(&c->seals.in, bytes, head) && head->bytes <= TN_JOIN_BODY &&
               caller_take(c, body, tn_sealed_body(head->bytes), deadline_s) &&
               tn_sealed_body_check(&c->seals.in, body, head->bytes);
  if (!whole) head->kind = 0;
  return whole;
}

/* The next frame other than a sign of life. */
static bool caller_receive_next(caller *c, tn_frame_head *head, unsigned char body[CALLER_BODY],
                                double deadline_s) {
  bool whole = true;
  do {
    double silent_s = c->heard_s + tn_join_silence_s(c->request);
    whole = caller_receive(c, head, body, silent_s < deadline_s ? silent_s : deadline_s);
    if (whole) c->heard_s = tn_clock_s();
  } while (whole && head->kind == TN_FRAME_BEAT);
  return whole;
}

static double caller_soon(const caller *c) {
  double soon = tn_clock_s() + TRY_S;
  return soon < c->deadline_s ? soon : c->deadline_s;
}

/* ---- greetings ---- */

/* The reason against a listener precedes that of a port without one, and an answer that is wrong precedes
 * silence. */
static void caller_note_listener(caller *c, const char *reason) {
  c->reason = reason;
  c->reached = true;
}

static void caller_note_silence(caller *c) {
  if (!c->reached) caller_note_listener(c, UNANSWERED);
}

static void caller_end_try(caller_try *t) {
  if (t->socket >= 0) tn_socket_close(t->socket);
  t->socket = -1;
  t->got = 0;
}

static void caller_end_tries(caller *c) {
  for (int32_t i = 0; i < TN_JOIN_PORTS; i++) caller_end_try(&c->tries[i]);
}

/* A listener of another user on this host gets nothing, and takes no time. */
static bool caller_trusts(caller *c, int socket) {
  uint32_t user;
  if (!tn_socket_peer_user(socket, true, &user) || user == geteuid()) return true;
  caller_note_listener(c, "one of them listens and belongs to another user");
  return false;
}

static tn_status caller_greet(caller *c, int32_t i) {
  caller_try *t = &c->tries[i];
  unsigned char bytes[TN_GREETING_BYTES];
  tn_greeting greeting = {.protocol = TN_PROTOCOL};
  const char *reason = "";
  t->socket =
      tn_socket_connect(c->host, c->request->place->port + i, caller_soon(c), c->request->stop, &reason);
  if (t->socket < 0 && !c->reached) c->reason = reason;
  if (t->socket < 0) return TN_OK;
  TN_TRY(tn_proof_draw(c->env, t->nonce));
  memcpy(greeting.nonce, t->nonce, sizeof t->nonce);
  tn_greeting_write(&greeting, bytes);
  t->since_s = tn_clock_s();
  t->got = 0;
  if (!caller_trusts(c, t->socket) || !tn_socket_send(t->socket, bytes, sizeof bytes, caller_soon(c)))
    caller_end_try(t);
  return TN_OK;
}

/* True: the other end knows the token. The connection has its key. */
static bool caller_judge(caller *c, const caller_try *t, unsigned char key[TN_KEY_BYTES]) {
  tn_greeting greeting;
  bool greets = tn_greeting_read(t->answer, &greeting);
  if (greets && greeting.protocol != TN_PROTOCOL)
    caller_note_listener(c, "one of them has another version of the protocol: install the same Tenon");
  if (!greets || greeting.protocol != TN_PROTOCOL) return false;
  tn_proof_key(c->request->place->token, t->nonce, greeting.nonce, key);
  if (tn_proof_check(key, TN_JOIN_LISTENER, NULL, 0, t->answer + TN_GREETING_BYTES)) return true;
  caller_note_listener(c,
                       "one of them does not prove that it knows the token of this job: it is process 0 of "
                       "another job");
  return false;
}

/* True: a whole answer has come. */
static bool caller_read_answer(caller *c, caller_try *t) {
  ssize_t n = recv(t->socket, t->answer + t->got, sizeof t->answer - t->got, 0);
  if (n > 0) t->got += (size_t)n;
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    caller_note_silence(c);
    caller_end_try(t);
  }
  return t->socket >= 0 && t->got == sizeof t->answer;
}

/* ---- the hello ---- */

static tn_status caller_refused(caller *c, const tn_frame_head *head, unsigned char *text) {
  char host[TN_HOST_BYTES];
  text[head->bytes < TN_REFUSAL_BYTES ? head->bytes : TN_REFUSAL_BYTES] = '\0';
  for (unsigned char *t = text; *t != '\0'; t++)
    if (*t < 0x20 || *t == 0x7f) *t = '?';
  tn_join_host(host);
  return tn_failf(c->env, TN_ECOMM, "process 0 refuses process %d on host %s: %s",
                  (int)c->request->place->process, host, (const char *)text);
}

/* True: process 0 has taken this one. */
static tn_status caller_enter(caller *c, const unsigned char key[TN_KEY_BYTES], bool *taken) {
  unsigned char bytes[TN_HELLO_BYTES + TN_PROOF_BYTES], text[CALLER_BODY];
  tn_hello hello;
  tn_frame_head head;
  tn_join_hello(c->request, &hello);
  tn_hello_write(&hello, bytes);
  tn_proof_make(key, TN_JOIN_CALLER, bytes, TN_HELLO_BYTES, bytes + TN_HELLO_BYTES);
  c->seals = tn_seals_new(key, false);
  *taken = tn_socket_send(c->socket, bytes, sizeof bytes, caller_soon(c)) &&
           caller_receive(c, &head, text, caller_soon(c)) &&
           (head.kind == TN_FRAME_BEAT || head.kind == TN_FRAME_REFUSED);
  if (!*taken) caller_note_silence(c);
  return *taken && head.kind == TN_FRAME_REFUSED ? caller_refused(c, &head, text) : TN_OK;
}

/* An answer has come from a port. */
static tn_status caller_follow(caller *c, caller_try *t, bool *taken) {
  unsigned char key[TN_KEY_BYTES];
  *taken = false;
  bool right = caller_judge(c, t, key);
  c->socket = right ? t->socket : -1;
  if (right) t->socket = -1;
  caller_end_try(t);
  if (!right) return TN_OK;
  tn_status status = caller_enter(c, key, taken);
  if (status == TN_OK && *taken) return TN_OK;
  tn_socket_close(c->socket);
  c->socket = -1;
  return status;
}

/* Waits for answers, and takes the first that has come as a whole; NULL: none has. */
static caller_try *caller_await_answer(caller *c, int pause_ms) {
  struct pollfd polls[TN_JOIN_PORTS];
  caller_try *whole = NULL, *of[TN_JOIN_PORTS];
  nfds_t n = 0;
  for (int32_t i = 0; i < TN_JOIN_PORTS; i++) {
    if (c->tries[i].socket < 0) continue;
    of[n] = &c->tries[i];
    polls[n++] = (struct pollfd){.fd = c->tries[i].socket, .events = POLLIN};
  }
  poll(polls, n, pause_ms);
  for (nfds_t i = 0; i < n && whole == NULL; i++) {
    if (polls[i].revents != 0 && caller_read_answer(c, of[i])) whole = of[i];
    if (of[i]->socket < 0 || whole != NULL || tn_clock_s() - of[i]->since_s < TRY_S) continue;
    caller_note_silence(c);
    caller_end_try(of[i]);
  }
  caller_note_pause(c);
  return whole;
}

/* ---- finding process 0 ---- */

static tn_status caller_fail(const caller *c) {
  const tn_process_place *place = c->request->place;
  const char *reason = c->reason;
  for (int32_t i = 0; i < TN_JOIN_PORTS && !c->reached; i++)
    if (c->tries[i].socket >= 0) reason = UNANSWERED;
  if (c->paused_s > 0) return tn_join_fail_paused(c->env, c->request, c->paused_s);
  return tn_failf(c->env, TN_ECOMM,
                  "process 0 was not found on host %s, ports %d to %d, within %g s ([distributed] timeout): "
                  "%s; if it runs on another host, set MASTER_ADDR to the name of that",
                  place->master, (int)place->port, (int)place->port + TN_JOIN_PORTS - 1,
                  c->request->timeout_s, reason);
}

/* A name server may be slow: it is asked at most each second, and its time does not count as a stop of this
 * process. False: the name is not known. */
static bool caller_look_up(caller *c) {
  const char *reason = "";
  if (c->named_s > 0 && tn_clock_s() - c->named_s < NAME_S) return c->host != NULL;
  tn_socket_host_free(c->host);
  c->host = tn_lookup_master(c->request, &reason);
  if (c->host == NULL) c->reason = reason;
  c->named_s = c->seen_s = tn_clock_s();
  return c->host != NULL;
}

/* Connections and look-ups that fail for it would be tried again until the time is over. Tries that wait for
 * an answer give theirs back. */
static tn_status caller_check_descriptors(const caller *c) {
  const char *reason = tn_socket_lacks_descriptors();
  char host[TN_HOST_BYTES];
  for (int32_t i = 0; i < TN_JOIN_PORTS; i++)
    if (c->tries[i].socket >= 0) return TN_OK;
  if (reason == NULL) return TN_OK;
  tn_join_host(host);
  return tn_failf(c->env, TN_ECOMM,
                  "process %d on host %s cannot open a connection to process 0: %s; see `ulimit -n`",
                  (int)c->request->place->process, host, reason);
}

/* Greets on the ports that have no connection. A pause before a round that completes has done no harm. */
static tn_status caller_go_round(caller *c) {
  int32_t ports = caller_look_up(c) ? TN_JOIN_PORTS : 0;
  double before_s = c->paused_s;
  c->paused_s = 0;
  for (int32_t i = 0; i < ports; i++) {
    if (tn_join_stopped(c->request)) return tn_failf(c->env, TN_ESTOPPED, "stopped");
    if (c->tries[i].socket >= 0) continue;
    TN_TRY(caller_greet(c, i));
    caller_note_pause(c);
    if (tn_clock_s() <= c->deadline_s) continue;
    if (c->paused_s == 0) c->paused_s = before_s;
    return caller_fail(c);
  }
  return caller_check_descriptors(c);
}

static tn_status caller_find(caller *c) {
  int pause_ms = LEAST_PAUSE_MS;
  bool taken = false;
  for (;;) {
    if (tn_join_stopped(c->request)) return tn_failf(c->env, TN_ESTOPPED, "stopped");
    TN_TRY(caller_go_round(c));
    caller_try *answer = caller_await_answer(c, pause_ms);
    if (answer != NULL) TN_TRY(caller_follow(c, answer, &taken));
    if (taken) return TN_OK;
    if (tn_clock_s() > c->deadline_s) return caller_fail(c);
    if (answer == NULL && pause_ms < MOST_PAUSE_MS) pause_ms *= 2;
  }
}

/* Process 0 tells why it gives up. */
static tn_status caller_lost(caller *c, const tn_frame_head *head, const unsigned char *text) {
  if (tn_join_stopped(c->request)) return tn_failf(c->env, TN_ESTOPPED, "stopped");
  if (c->paused_s > 0) return tn_join_fail_paused(c->env, c->request, c->paused_s);
  if (head->kind == TN_FRAME_FAILURE) {
    tn_wire_failure failure;
    if (tn_failure_read(text, head->bytes, &failure))
      return tn_failf(c->env, (tn_status)failure.status, "process 0: %s", failure.text);
  }
  if (tn_socket_has_ended(c->socket))
    return tn_failf(c->env, TN_ECOMM,
                    "process 0 on host %s has ended while the others came; see its own messages",
                    c->request->place->master);
  if (tn_clock_s() - c->heard_s >= tn_join_silence_s(c->request))
    return tn_failf(
        c->env, TN_ECOMM,
        "process 0 on host %s has not been heard of for %g s while the processes came together: it "
        "is stopped, or its host or network is down",
        c->request->place->master, tn_join_silence_s(c->request));
  return tn_failf(
      c->env, TN_ECOMM,
      "process 0 on host %s does not say within %g s ([distributed] timeout) that all have come; it is "
      "stopped, or see its own messages",
      c->request->place->master, c->request->timeout_s);
}

static bool caller_is_member(const tn_frame_head *head, int32_t m) {
  return head->kind == TN_FRAME_WELCOME && head->number == (uint64_t)m && head->bytes == TN_MEMBER_BYTES;
}

/* The ranks follow each other in the order of processes. */
static bool caller_takes_member(caller *c, const unsigned char *body, int32_t m) {
  tn_member *member = &c->joined->members[m];
  if (!tn_member_read(body, member)) return false;
  int32_t first = m == 0 ? 0 : member[-1].first_rank + member[-1].ranks;
  bool own = m == c->request->place->process;
  return member->first_rank == first && (!own || member->ranks == c->request->ranks);
}

static tn_status caller_read_members(caller *c) {
  unsigned char body[CALLER_BODY];
  double half = c->request->timeout_s / 2,
         deadline = tn_clock_s() + c->request->timeout_s + (half < GRACE_S ? half : GRACE_S);
  c->taken = true;
  c->paused_s = 0;
  c->heard_s = tn_clock_s();
  if (c->request->taken != NULL) atomic_store(c->request->taken, 1);
  for (int32_t m = 0; m < c->joined->n; m++) {
    tn_frame_head head = {.kind = 0};
    if (!caller_receive_next(c, &head, body, deadline) || !caller_is_member(&head, m) ||
        !caller_takes_member(c, body, m))
      return caller_lost(c, &head, body);
  }
  return TN_OK;
}

tn_status tn_join_connect(tn_env *env, const tn_join_request *request, tn_joined *joined) {
  double now = tn_clock_s();
  caller c = {.env = env,
              .request = request,
              .joined = joined,
              .deadline_s = now + request->timeout_s,
              .seen_s = now,
              .reason = "no answer",
              .socket = -1};
  for (int32_t i = 0; i < TN_JOIN_PORTS; i++) c.tries[i].socket = -1;
  tn_status status = caller_find(&c);
  caller_end_tries(&c);
  if (status == TN_OK) status = caller_read_members(&c);
  joined->seals[0] = c.seals;
  if (c.socket >= 0) joined->sockets[0] = c.socket;
  tn_socket_host_free(c.host);
  return status;
}
