/* tests/attack/families/squatter.c: see squatter.h. */
#include "tests/attack/families/squatter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const squatter_words[SQUATTER_WAYS] = {
    "says nothing", "closes", "answers garbage", "echoes", "passes bytes on", "passes changed bytes on"};

enum { PORTS = 32, MOST_CONNECTIONS = 256, CHANGE_EVERY = 40 /* parts of bytes */ };

/* Each connection may have one to process 0 beside it. */
typedef struct connection {
  int socket, other; /* -1: none */
} connection;

typedef struct squatter {
  squatter_way way;
  int first;
  uint32_t ports;
  int listeners[PORTS], n_listeners;
  connection connections[MOST_CONNECTIONS];
  int n_connections, record;
} squatter;

static struct sockaddr_in squatter_address(int port) {
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

static int squatter_listen(int port) {
  struct sockaddr_in address = squatter_address(port);
  int on = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (s >= 0 && bind(s, (struct sockaddr *)&address, sizeof address) == 0 && listen(s, 64) == 0) return s;
  if (s >= 0) close(s);
  return -1;
}

bool squatter_is_free(int port) {
  int s = squatter_listen(port);
  if (s >= 0) close(s);
  return s >= 0;
}

/* Process 0 listens on a port that the squatter has not taken. */
static int squatter_reach_process_0(const squatter *s) {
  for (int i = 0; i < PORTS; i++) {
    struct sockaddr_in address = squatter_address(s->first + i);
    if ((s->ports >> i & 1) != 0 || i > 17) continue;
    int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (to >= 0 && connect(to, (struct sockaddr *)&address, sizeof address) == 0) return to;
    if (to >= 0) close(to);
  }
  return -1;
}

static void squatter_accept(squatter *s, int listener) {
  int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC), other = -1;
  if (socket < 0) return;
  bool relays = s->way == SQUATTER_RELAYS || s->way == SQUATTER_CHANGES;
  if (relays) other = squatter_reach_process_0(s);
  if (s->way == SQUATTER_CLOSES || s->n_connections == MOST_CONNECTIONS || (relays && other < 0)) {
    close(socket);
    if (other >= 0) close(other);
    return;
  }
  s->connections[s->n_connections++] = (connection){socket, other};
}

static void squatter_answer(const squatter *s, const connection *c, bool from_other, char *bytes, size_t n) {
  if (s->way == SQUATTER_GARBAGE)
    for (size_t i = 0; i < n; i++) bytes[i] = (char)attack_draw(256);
  if (s->way == SQUATTER_CHANGES && attack_draw(CHANGE_EVERY) == 0)
    bytes[attack_draw(n)] ^= (char)(1 << attack_draw(8));
  int to = from_other || c->other < 0 ? c->socket : c->other;
  if (s->way != SQUATTER_SILENT && send(to, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

/* False: the connection has ended. */
static bool squatter_pass(const squatter *s, const connection *c, bool from_other) {
  char bytes[65536];
  ssize_t n = recv(from_other ? c->other : c->socket, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) return false;
  if (write(s->record, bytes, (size_t)n) != n) return false;
  squatter_answer(s, c, from_other, bytes, (size_t)n);
  return true;
}

static void squatter_look(squatter *s) {
  struct pollfd polls[PORTS + 2 * MOST_CONNECTIONS];
  nfds_t n = 0;
  for (int i = 0; i < s->n_listeners; i++)
    polls[n++] = (struct pollfd){.fd = s->listeners[i], .events = POLLIN};
  for (int i = 0; i < s->n_connections; i++) {
    polls[n++] = (struct pollfd){.fd = s->connections[i].socket, .events = POLLIN};
    polls[n++] = (struct pollfd){.fd = s->connections[i].other, .events = POLLIN};
  }
  if (poll(polls, n, 1000) <= 0) return;
  for (int i = s->n_connections - 1; i >= 0; i--) {
    connection *c = &s->connections[i];
    struct pollfd *at = &polls[s->n_listeners + 2 * i];
    if ((at[0].revents == 0 || squatter_pass(s, c, false)) &&
        (at[1].revents == 0 || squatter_pass(s, c, true)))
      continue;
    close(c->socket);
    if (c->other >= 0) close(c->other);
    *c = s->connections[--s->n_connections];
  }
  for (int i = 0; i < s->n_listeners; i++)
    if (polls[i].revents != 0) squatter_accept(s, s->listeners[i]);
}

pid_t squatter_start(squatter_way way, int first, uint32_t ports, uint64_t seed, int *taken) {
  static squatter s;
  s = (squatter){.way = way, .first = first, .ports = ports};
  for (int i = 0; i < PORTS; i++) {
    int listener = (ports >> i & 1) != 0 ? squatter_listen(first + i) : -1;
    if (listener >= 0) s.listeners[s.n_listeners++] = listener;
  }
  s.record = open("squatter.bytes", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  *taken = s.n_listeners;
  pid_t pid = fork();
  if (pid < 0 || s.record < 0) attack_die("squatter: %s", strerror(errno));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    attack_draw_from("squatter", seed, 0);
    for (;;) squatter_look(&s);
  }
  for (int i = 0; i < s.n_listeners; i++) close(s.listeners[i]);
  close(s.record);
  return pid;
}

void squatter_stop(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}
