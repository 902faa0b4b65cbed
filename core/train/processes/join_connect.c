/* core/train/processes/join_connect.c: a process comes to process 0. The port may belong to another program,
 * which answers nothing or closes: then the next one is tried, again and again until the time is over, since
 * process 0 may start later. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/system.h"
#include "core/train/processes/join.h"
#include "core/train/processes/lookup.h"
#include "core/train/processes/socket.h"

static const double TRY_S = 5;    /* for a connection, and for the first answer */
static const double LOOK_S = 0.1; /* between two looks for a request to stop */
static const double MOST_S = 16;  /* for one try, unless this process was stopped */
static const double NAME_S = 1;   /* between two look-ups of the host's name */
/* Process 0 has the list of missing processes, so those that it has taken give up later by this time, or half
 * the limit. */
static const double GRACE_S = 5;

/* Between two rounds over the ports. */
enum { LEAST_PAUSE_NS = 5000000, MOST_PAUSE_NS = 100000000 };

typedef struct caller {
  tn_env *env;
  const tn_join_request *request;
  tn_joined *joined;
  double deadline_s, seen_s, paused_s; /* tn_join_pause; the last pause, 0: none in the last round */
  const char *reason;                  /* against the last port, or the one where nothing answers */
  bool unanswered;
  tn_socket_host *host; /* the addresses of process 0; NULL: they are not known */
  double named_s;       /* the last look-up */
  int socket;
  bool taken; /* by process 0: signs of life go both ways */
  double heard_s, said_s;
} caller;

static void caller_note_pause(caller *c) {
  double pause = tn_join_pause(&c->seen_s, MOST_S);
  if (pause > 0) c->paused_s = pause;
}

static void caller_beat(caller *c) {
  unsigned char bytes[TN_FRAME_HEAD];
  double now = tn_clock_s();
  if (!c->taken || now - c->said_s < tn_join_beat_s(c->request)) return;
  tn_frame_head_write(&(tn_frame_head){.kind = TN_FRAME_BEAT}, bytes);
  tn_socket_send(c->socket, bytes, sizeof bytes, now);
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
static bool caller_receive(caller *c, tn_frame_head *head, unsigned char *body, uint32_t most,
                           double deadline_s) {
  unsigned char bytes[TN_FRAME_HEAD];
  bool whole = caller_take(c, bytes, sizeof bytes, deadline_s) && tn_frame_head_read(bytes, head) &&
               head->bytes <= most && caller_take(c, body, head->bytes, deadline_s);
  if (!whole) head->kind = 0;
  return whole;
}

/* The next frame other than a sign of life. */
static bool caller_receive_next(caller *c, tn_frame_head *head, unsigned char *body, uint32_t most,
                                double deadline_s) {
  bool whole = true;
  do {
    double silent_s = c->heard_s + tn_join_silence_s(c->request);
    whole = caller_receive(c, head, body, most, silent_s < deadline_s ? silent_s : deadline_s);
    if (whole) c->heard_s = tn_clock_s();
  } while (whole && head->kind == TN_FRAME_BEAT);
  return whole;
}

static double caller_soon(const caller *c) {
  double soon = tn_clock_s() + TRY_S;
  return soon < c->deadline_s ? soon : c->deadline_s;
}

static tn_status caller_refused(caller *c, const tn_frame_head *head, unsigned char *text) {
  char host[TN_HOST_BYTES];
  text[head->bytes] = '\0';
  for (unsigned char *t = text; *t != '\0'; t++)
    if (*t < 0x20 || *t == 0x7f) *t = '?';
  tn_join_host(host);
  return tn_failf(c->env, TN_ECOMM, "process 0 refuses process %d on host %s: %s",
                  (int)c->request->place->process, host, (const char *)text);
}

/* True: process 0 of the job is there and has taken this one. */
static tn_status caller_greet(caller *c, bool *taken) {
  unsigned char bytes[TN_HELLO_BYTES], text[TN_REFUSAL_BYTES + 1];
  tn_hello hello;
  tn_frame_head head;
  tn_join_hello(c->request, &hello);
  tn_hello_write(&hello, bytes);
  *taken = tn_socket_send(c->socket, bytes, sizeof bytes, caller_soon(c)) &&
           caller_receive(c, &head, text, TN_REFUSAL_BYTES, caller_soon(c)) &&
           (head.kind == TN_FRAME_BEAT || head.kind == TN_FRAME_REFUSED);
  if (!*taken) c->reason = "one of them listens and does not answer: it is stopped, or another program";
  if (!*taken) c->unanswered = true;
  return *taken && head.kind == TN_FRAME_REFUSED ? caller_refused(c, &head, text) : TN_OK;
}

static tn_status caller_try(caller *c, int32_t port, bool *taken) {
  *taken = false;
  const char *reason = "";
  c->socket = tn_socket_connect(c->host, port, caller_soon(c), c->request->stop, &reason);
  if (c->socket < 0 && !c->unanswered) c->reason = reason;
  if (c->socket < 0) return TN_OK;
  tn_status status = caller_greet(c, taken);
  if (status == TN_OK && *taken) return TN_OK;
  close(c->socket);
  c->socket = -1;
  return status;
}

static void caller_pause(struct timespec *pause) {
  nanosleep(pause, NULL);
  if (pause->tv_nsec < MOST_PAUSE_NS) pause->tv_nsec *= 2;
}

static tn_status caller_fail(const caller *c) {
  const tn_process_place *place = c->request->place;
  if (c->paused_s > 0) return tn_join_fail_paused(c->env, c->request, c->paused_s);
  return tn_failf(c->env, TN_ECOMM,
                  "process 0 was not found on host %s, ports %d to %d, within %g s ([distributed] timeout): "
                  "%s; if it runs on another host, set MASTER_ADDR to the name of that",
                  place->master, (int)place->port, (int)place->port + TN_JOIN_PORTS - 1,
                  c->request->timeout_s, c->reason);
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

/* Connections and look-ups that fail for it would be tried again until the time is over. */
static tn_status caller_check_descriptors(const caller *c) {
  const char *reason = tn_socket_lacks_descriptors();
  char host[TN_HOST_BYTES];
  if (reason == NULL) return TN_OK;
  tn_join_host(host);
  return tn_failf(c->env, TN_ECOMM,
                  "process %d on host %s cannot open a connection to process 0: %s; see `ulimit -n`",
                  (int)c->request->place->process, host, reason);
}

/* All ports, until process 0 has taken this process or the time is over. A pause before a round that
 * completes has done no harm. */
static tn_status caller_go_round(caller *c, bool *taken) {
  int32_t ports = caller_look_up(c) ? TN_JOIN_PORTS : 0;
  double before_s = c->paused_s;
  c->paused_s = 0;
  for (int32_t i = 0; i < ports && !*taken; i++) {
    if (tn_join_stopped(c->request)) return tn_failf(c->env, TN_ESTOPPED, "stopped");
    TN_TRY(caller_try(c, c->request->place->port + i, taken));
    caller_note_pause(c);
    if (*taken || tn_clock_s() <= c->deadline_s) continue;
    if (c->paused_s == 0) c->paused_s = before_s;
    return caller_fail(c);
  }
  return *taken ? TN_OK : caller_check_descriptors(c);
}

static tn_status caller_find(caller *c) {
  struct timespec pause = {0, LEAST_PAUSE_NS};
  bool taken = false;
  for (;;) {
    if (tn_join_stopped(c->request)) return tn_failf(c->env, TN_ESTOPPED, "stopped");
    TN_TRY(caller_go_round(c, &taken));
    if (taken) return TN_OK;
    if (tn_clock_s() > c->deadline_s) return caller_fail(c);
    caller_pause(&pause);
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
  unsigned char body[TN_FAILURE_BYTES];
  double half = c->request->timeout_s / 2,
         deadline = tn_clock_s() + c->request->timeout_s + (half < GRACE_S ? half : GRACE_S);
  c->taken = true;
  c->paused_s = 0;
  c->heard_s = tn_clock_s();
  for (int32_t m = 0; m < c->joined->n; m++) {
    tn_frame_head head = {.kind = 0};
    if (!caller_receive_next(c, &head, body, sizeof body, deadline) || !caller_is_member(&head, m) ||
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
  tn_status status = caller_find(&c);
  if (status == TN_OK) status = caller_read_members(&c);
  if (c.socket >= 0) joined->sockets[0] = c.socket;
  tn_socket_host_free(c.host);
  return status;
}
