/* core/train/processes/join_connect.c: a process comes to process 0. The port may belong to another program,
 * which answers nothing or closes: then the next one is tried, again and again until the time is over, since
 * process 0 may start later. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/system.h"
#include "core/train/processes/join.h"
#include "core/train/processes/socket.h"

static const double TRY_S = 5; /* for a connection, and for the first answer */

typedef struct caller {
  tn_env *env;
  const tn_join_request *request;
  tn_joined *joined;
  double deadline_s;
  const char *reason; /* against the last port */
  int socket;
} caller;

static bool caller_receive(caller *c, tn_frame_head *head, unsigned char *body, uint32_t most,
                           double deadline_s) {
  unsigned char bytes[TN_FRAME_HEAD];
  return tn_socket_receive(c->socket, bytes, sizeof bytes, deadline_s) && tn_frame_head_read(bytes, head) &&
         head->bytes <= most && tn_socket_receive(c->socket, body, head->bytes, deadline_s);
}

static double caller_soon(const caller *c) {
  double soon = tn_clock_s() + TRY_S;
  return soon < c->deadline_s ? soon : c->deadline_s;
}

/* True: process 0 of the job is there and has taken this one. */
static tn_status caller_greet(caller *c, bool *taken) {
  unsigned char bytes[TN_HELLO_BYTES], text[512];
  tn_hello hello;
  tn_frame_head head;
  tn_join_hello(c->request, &hello);
  tn_hello_write(&hello, bytes);
  c->reason = "another program answers there";
  *taken = tn_socket_send(c->socket, bytes, sizeof bytes, caller_soon(c)) &&
           caller_receive(c, &head, text, sizeof text - 1, caller_soon(c)) &&
           (head.kind == TN_FRAME_BEAT || head.kind == TN_FRAME_REFUSED);
  if (!*taken || head.kind == TN_FRAME_BEAT) return TN_OK;
  text[head.bytes] = '\0';
  return tn_failf(c->env, TN_ECOMM, "process 0 refuses process %d on host %s: %s", (int)hello.process,
                  hello.host, (const char *)text);
}

static tn_status caller_try(caller *c, int32_t port, bool *taken) {
  const tn_process_place *place = c->request->place;
  *taken = false;
  c->socket = tn_socket_connect(place->master, port, caller_soon(c), &c->reason);
  if (c->socket < 0) return TN_OK;
  tn_status status = caller_greet(c, taken);
  if (status == TN_OK && *taken) return TN_OK;
  close(c->socket);
  c->socket = -1;
  return status;
}

static tn_status caller_find(caller *c) {
  const tn_process_place *place = c->request->place;
  const struct timespec pause = {0, 100000000};
  bool taken = false;
  for (int32_t i = 0; !taken; i++) {
    if (tn_join_stopped(c->request)) return tn_failf(c->env, TN_ESTOPPED, "stopped");
    TN_TRY(caller_try(c, place->port + i % TN_JOIN_PORTS, &taken));
    if (taken) return TN_OK;
    if (tn_clock_s() > c->deadline_s)
      return tn_failf(
          c->env, TN_ECOMM,
          "process 0 was not found on host %s, ports %d to %d, within %g s ([distributed] timeout): %s",
          place->master, (int)place->port, (int)place->port + TN_JOIN_PORTS - 1, c->request->timeout_s,
          c->reason);
    if (i % TN_JOIN_PORTS == TN_JOIN_PORTS - 1) nanosleep(&pause, NULL);
  }
  return TN_OK;
}

static tn_status caller_read_members(caller *c) {
  unsigned char body[TN_MEMBER_BYTES];
  tn_frame_head head;
  for (int32_t m = 0; m < c->joined->n; m++)
    if (!caller_receive(c, &head, body, sizeof body, c->deadline_s) || head.kind != TN_FRAME_WELCOME ||
        head.number != (uint64_t)m || head.bytes != TN_MEMBER_BYTES ||
        !tn_member_read(body, &c->joined->members[m]))
      return tn_failf(
          c->env, TN_ECOMM,
          "process 0 on host %s has ended, or all others did not come, within %g s ([distributed] "
          "timeout); see what it said",
          c->request->place->master, c->request->timeout_s);
  return TN_OK;
}

tn_status tn_join_connect(tn_env *env, const tn_join_request *request, tn_joined *joined) {
  caller c = {.env = env,
              .request = request,
              .joined = joined,
              .deadline_s = tn_clock_s() + request->timeout_s,
              .reason = "no answer",
              .socket = -1};
  tn_status status = caller_find(&c);
  if (status == TN_OK) status = caller_read_members(&c);
  if (c.socket >= 0) joined->sockets[0] = c.socket;
  return status;
}
